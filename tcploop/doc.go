// Package tcploop makes channels of TCP connections over the loopback interface (tcp(7)).
//
// A channel is a stream: a Read returns what is there, however it was written, and the
// peer's CloseWrite or Close is read as io.EOF. A peer that closes with unread data, or
// dies so, resets the connection: then Read and Write are ECONNRESET or EPIPE.
//
// Only addresses of the loopback interface are taken: 127.0.0.0/8, ::1, and the
// name localhost. Anything else is [ErrNotLoopback], before any system call. No
// name is ever looked up.
//
// Nagle's algorithm is off (TCP_NODELAY) unless Config asks for it: together with delayed
// acknowledgements it makes a request of two small writes take 40 ms and more.
//
// The congestion control decides the throughput of loopback too, several-fold. It is the
// system's, [Default], unless Config names another.
//
// A connection that ends leaves its port in TIME_WAIT for a minute, on the side that
// closed first. A program that makes short connections at a high rate runs out of
// ports, and Dial is EADDRNOTAVAIL then.
package tcploop
