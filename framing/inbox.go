package framing

import (
	"bufio"
	"io"
)

// firstBuffer is how many bytes are read ahead, and all the memory that a peer
// gets for a header, whatever it claims.
const firstBuffer = 16 << 10

// batch is how many messages are cut at once, a power of two.
const batch = 64

// An inbox holds the bytes that have arrived and are not taken yet.
type inbox struct {
	format     Format
	cutter     cutter
	sized      sized     // format, if it is
	resumable  resumable // format, if it is
	buf        []byte
	start, end int           // of the unread bytes in buf
	seen       int           // that many unread bytes hold no whole frame
	msgs       [batch][]byte // messages that have been cut out of buf
	taken, cut uint          // of msgs
	err        error         // final: bytes that are no frame, or the end within one
	late       error         // came from the stream together with bytes
}

func newInbox(f Format) inbox {
	in := inbox{format: f}
	in.sized, _ = f.(sized)
	if in.cutter, _ = f.(cutter); in.cutter == nil {
		in.cutter = oneByOne{f}
	}
	in.resumable, _ = f.(resumable)
	return in
}

// unread are the bytes that are not cut into messages.
func (in *inbox) unread() []byte { return in.buf[in.start:in.end] }

// empty: nothing has been read ahead.
func (in *inbox) empty() bool { return in.start == in.end && in.taken == in.cut }

// idle: and nothing is known that would come before the next bytes.
func (in *inbox) idle() bool { return in.empty() && in.err == nil && in.late == nil }

// next returns the message of a whole frame, if there is one. It is valid until the next fill.
func (in *inbox) next() (msg []byte, ok bool) {
	if i := in.taken; i < in.cut {
		in.taken++
		return in.msgs[i%batch], true
	}
	return in.cutOut()
}

// cutOut is next when all messages that were cut have been taken.
func (in *inbox) cutOut() (msg []byte, ok bool) {
	data := in.buf[in.start:in.end]
	if in.seen > 0 {
		return in.resume(data)
	}
	n, size, err := in.cutter.cut(data, in.msgs[:])
	if n == 0 {
		return in.incomplete(data, size, err)
	}
	in.start += size
	in.taken, in.cut = 1, uint(n)
	return in.msgs[0], true
}

// resume is next of a frame that was not complete the last time.
func (in *inbox) resume(data []byte) (msg []byte, ok bool) {
	if len(data) == in.seen || in.err != nil {
		return nil, false
	}
	var size int
	var err error
	if in.resumable != nil {
		msg, size, err = in.resumable.nextFrom(data, in.seen)
	} else {
		msg, size, err = in.format.Next(data)
	}
	if err == nil && uint(size-1) < uint(len(data)) {
		in.start, in.seen = in.start+size, 0
		in.msgs[0], in.taken, in.cut = msg, 1, 1
		return msg, true
	}
	return in.incomplete(data, size, err)
}

func (in *inbox) incomplete(data []byte, size int, err error) (msg []byte, ok bool) {
	in.seen = len(data)
	switch {
	case in.err != nil:
	case err != nil:
		in.err = err
	case size != 0:
		in.err = failed("next", "a frame of %d bytes in %d: %w", size, len(data), ErrFrameInvalid)
	}
	return nil, false
}

// coming is the length of the message that the unread bytes begin, if its header says it and is there.
func (in *inbox) coming() (head, body int) {
	if in.sized == nil || in.start == in.end {
		return 0, 0
	}
	head, body, _ = in.sized.header(in.unread())
	return head, body
}

// room returns where further bytes go. The memory grows with what has arrived.
func (in *inbox) room() []byte {
	if in.start > 0 {
		in.end = copy(in.buf, in.unread())
		in.start = 0
	}
	if len(in.buf)-in.end <= len(in.buf)/4 {
		in.grow(max(2*len(in.buf), firstBuffer))
	}
	return in.buf[in.end:]
}

func (in *inbox) grow(size int) {
	bigger := make([]byte, size)
	copy(bigger, in.buf[:in.end])
	in.buf = bigger
}

// keep adds bytes that have arrived elsewhere.
func (in *inbox) keep(p []byte) {
	if in.start == in.end {
		in.start, in.end, in.seen = 0, 0, 0
	}
	if need := in.end + len(p); need > len(in.buf) {
		in.grow(max(2*len(in.buf), need))
	}
	in.end += copy(in.buf[in.end:], p)
}

// fill reads once, at most limit bytes. Where a stream ends within a frame, it is io.ErrUnexpectedEOF.
func (in *inbox) fill(read func([]byte) (int, error), limit int) error {
	if err := in.late; err != nil {
		in.late = nil
		return in.ended(err)
	}
	room := in.room()
	room = room[:min(limit, len(room))]
	for range 100 { // as bufio.Reader has it
		n, err := read(room)
		switch {
		case uint(n) > uint(len(room)):
			return &opError{"read", bufio.ErrBadReadCount}
		case n > 0:
			in.end += n
			in.late = err
			return nil
		case err != nil:
			return in.ended(err)
		}
	}
	return &opError{"read", io.ErrNoProgress}
}

// ended makes of the end of the stream what it is here. The error within a frame is final.
func (in *inbox) ended(err error) error {
	if err == io.EOF && in.start < in.end {
		in.err = io.ErrUnexpectedEOF
		return in.err
	}
	return err
}

// remains returns what there is of the message that the end of the stream has cut, once.
func (in *inbox) remains() []byte {
	head, _ := in.coming()
	rest := in.unread()[head:]
	in.start, in.seen = in.end, 0
	if in.sized != nil && head == 0 {
		return nil // of its header only a part
	}
	return rest
}
