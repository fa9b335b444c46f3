// Package unixsock makes channels of unix sockets (unix(7)): streams, datagrams, and
// sequenced packets.
//
// [Stream] is a stream of bytes with an end. [SeqPacket] keeps the boundaries of
// messages and has an end; an empty message would read as that end, so writing
// one is ipcbench.ErrEmptyMessage, and one from a foreign peer is told from
// the end except directly before it. [Dgram] keeps boundaries, an empty message is a message, and there is no end: a
// reader never learns that its peer has gone, neither by close nor by shutdown.
//
// The longest message of a Dgram or SeqPacket is SO_SNDBUF less 32 bytes;
// Contract().MaxMessage asks the kernel each time. Nothing that a Write accepted is ever
// dropped: a full receiver makes the writer wait. A datagram receiver is full at
// net.unix.max_dgram_qlen messages, and a connection at the sender's SO_SNDBUF.
//
// # A peer that has gone
//
// A Write to it is EPIPE (Stream, SeqPacket) or ECONNREFUSED (Dgram) and raises no signal. A
// Dgram that has been refused once is not connected any more: each further Write is ENOTCONN,
// also when a new receiver has taken the address. Dial again.
//
// A peer that closes with unread data resets the connection: a Stream then reads what is
// queued and ECONNRESET, a SeqPacket ECONNRESET and then what is queued.
//
// A Read of a Dgram has three ways out: to know the number of messages, to agree on an end ([Terminated]),
// and not to wait (TryRead, or a deadline).
//
// # What only a unix socket can do
//
// Open files travel over all three kinds ([Channel.SendFiles], [Channel.RecvFiles]): the peer gets a descriptor
// of its own for a file, a socket or a connection that was accepted elsewhere, whatever
// it might open itself. A connection knows who is at its other end ([Channel.PeerCred]), and a listener refuses whom it does not
// want (Config.Accept). The permissions of the socket file say who may connect at all (Config.Mode).
//
// # Addresses
//
// An address that begins with '@' or a NUL byte is an abstract name, up to 107 bytes
// after the first; NULs in it count. It has no file and no permissions: everybody in the network
// namespace may connect. Every other address is a path of up to 107 bytes.
// Anything longer is ENAMETOOLONG, and nothing is cut.
//
// [Listen] and [Bind] make the file of a path under a temporary name, with its
// mode, and link it into place when connections are taken: there is no moment
// at which it refuses a connection, or takes one that Config.Mode forbids. The kernel keeps the temporary
// name as the socket's own, which ss(8) and getpeername(2) show; it begins with the path if there is room.
// The file of an owner that has died is taken over. A living owner's is EADDRINUSE,
// and so is anything that is no socket; both stay as they are.
package unixsock
