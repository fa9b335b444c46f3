// Package pipe makes channels of pipes: anonymous ones, packet pipes and named ones.
//
// A pipe carries bytes one way, so a channel is two of them. It is a stream: a
// Read returns what is there, however it was written. The end of the stream is
// read as io.EOF once every descriptor of the other end is closed, in every
// process that has one; all descriptors here are close-on-exec, so that a child
// has only what it was given. A Write to a pipe without a reader is EPIPE, and no signal.
//
// With Config.Packets the pipes are in packet mode (O_DIRECT, pipe(2)): each
// Write of 1 to 4096 bytes is one Read. An empty Write would vanish, so it is
// ipcbench.ErrEmptyMessage; a longer one would be split, so it is
// ipcbench.ErrMessageTooLong.
//
// Writes of up to PIPE_BUF, 4096 bytes, are atomic also between processes that
// share an end (pipe(7)).
//
// # Waiting and other processes
//
// The modes of a pipe's descriptors, blocking or not, belong to the open pipe
// and not to a process. A process that takes an end over sets them as its own wait
// needs. If two processes keep the same end, give both the same wait.
package pipe
