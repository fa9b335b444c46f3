// Package soak is a test for as long as one likes: every mechanism, in every wait, in both directions at
// once, with deadlines, closes and peers that are killed. It counts every byte and message, and at the end what is left open.
//
//	IPCBENCH_SOAK=10m go test -race -timeout=0 ./internal/soak
package soak
