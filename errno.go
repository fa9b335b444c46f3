//go:build !plan9

package ipcbench

import "syscall"

// The errno that a sentinel matches beside itself.
const (
	errWouldBlock     = syscall.EAGAIN
	errMessageTooLong = syscall.EMSGSIZE
)
