// Package cpu chooses the CPUs of the two parties of a benchmark, by their
// place in the machine, and pins threads and processes to them. Linux only, up
// to 1024 CPUs.
//
// A party that waits in Go's netpoller must not be pinned by its thread: the
// runtime wakes it on any. PinProcess is for those, PinThread for the others.
package cpu
