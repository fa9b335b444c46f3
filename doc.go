// Package ipcbench is one interface over the local IPC mechanisms of Linux, and
// a way to say with numbers and proofs what each of them costs and promises on
// the kernel in front of you.
//
// # One signature, two contracts
//
// Pipes, unix sockets and TCP loopback all answer to the same read and write,
// and mean different things by it. Three writes of 3, 2 and 4 bytes arrive on a
// byte stream as one read of 9; on a datagram socket as three reads. A loop that
// reads "until the end" stops on a pipe when its writer closes, and waits for
// ever on a datagram socket, which has no end. The signature hides both. So a
// [Channel] comes with its [Contract], which states what a Read returns and how
// a conversation ends, and code branches on the contract, never on the type.
//
// The mechanisms are packages of their own, each of which returns Channels:
//
//   - [github.com/seed-e1736cc0/ipcbench/pipe]: anonymous, packet and named pipes
//   - [github.com/seed-e1736cc0/ipcbench/unixsock]: unix stream, datagram and seqpacket sockets
//   - [github.com/seed-e1736cc0/ipcbench/tcploop]: TCP over loopback
//
// Package [github.com/seed-e1736cc0/ipcbench/channeltest] proves the contract of
// any Channel, one's own included, and measures what it costs.
//
// # Waiting
//
// How a call waits decides most of what it costs. [Wait] names four ways: in the
// Go runtime's poller, in the kernel, by trying again, or by trying for a while
// first. Every mechanism has all four, with deadlines, non-blocking calls and
// Close from another goroutine working in each.
package ipcbench
