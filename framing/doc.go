// Package framing gives a stream of bytes message boundaries.
//
// A pipe, a stream socket and TCP carry bytes: three writes may arrive as one read, and one write as three.
// A Format says where a message ends; everything else takes one:
//
//   - LengthPrefix and Varint put the length first. They carry any bytes, and refuse a
//     message that is too long before there is memory for it.
//   - Delimiter puts a mark behind the message, as text protocols do. A message that contains the mark is refused.
//
// New makes of a channel without boundaries one that has them, so that code for datagrams runs over a
// pipe or TCP as it is: its Contract says what it then promises. Reader, Writer and SplitFunc work on any
// io.Reader and io.Writer.
//
// A limit on the length belongs to each Format, and is checked before anything is
// allocated or sent. An error of a frame is final: nothing in a stream tells where
// the next frame would begin, so no one looks for it.
//
// The package depends on the root package alone and builds on every platform.
package framing
