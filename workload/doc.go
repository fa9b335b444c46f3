// Package workload measures whole programs instead of loops: a log collector,
// control commands, shell pipelines, a server that hands its connections to workers, connections
// made and closed, and Redis. It has benchmarks and tests alone; there is nothing to import.
//
//	go test -run='^$' -bench=. ./workload
package workload
