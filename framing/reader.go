package framing

import (
	"bufio"
	"io"
	"iter"
	"math"
)

// A Reader takes frames from a stream of bytes. It reads ahead: what stands
// behind a frame is in the Reader and not in the stream any more. It must not be used by
// several goroutines at once.
type Reader struct {
	in   inbox
	read func([]byte) (int, error)
}

// NewReader returns a Reader of the frames in r. Its memory is 16 KiB, and for
// longer frames up to four times what has arrived of one.
func NewReader(r io.Reader, f Format) *Reader {
	return &Reader{newInbox(f), r.Read}
}

// Next returns the next message without copying it. It is valid until the next call of a
// method of the Reader, and its bytes may be changed until then.
//
// At the end of the stream it returns io.EOF. If the stream ends within a frame, it
// returns what there is of the message and io.ErrUnexpectedEOF. That error, and
// ErrFrameTooLarge and ErrFrameInvalid, are final: every further call returns them, since nothing tells where
// the next frame would begin. After any other error of the stream, as of a
// deadline, Next goes on where it was.
func (r *Reader) Next() ([]byte, error) {
	if i := r.in.taken; i < r.in.cut {
		r.in.taken++
		return r.in.msgs[i%batch], nil
	}
	return r.wait()
}

// wait is Next when all messages that were cut have been taken.
func (r *Reader) wait() ([]byte, error) {
	for {
		if msg, ok := r.in.next(); ok {
			return msg, nil
		}
		if r.in.err != nil {
			return nil, r.in.err
		}
		switch err := r.in.fill(r.read, math.MaxInt); {
		case r.in.err != nil:
			return r.in.remains(), err
		case err != nil:
			return nil, err
		}
	}
}

// AppendNext is Next that copies: it returns dst with the next message added.
func (r *Reader) AppendNext(dst []byte) ([]byte, error) {
	msg, err := r.Next()
	return append(dst, msg...), err
}

// NextBatch returns the next messages that are here, at least one: it waits as Next does if there is
// none. They and the slice are valid until the next call of a method of the Reader. Instead of messages there
// is what Next returns at the end or with an error: of a message that was cut off, what there is of it.
func (r *Reader) NextBatch() ([][]byte, error) {
	msg, err := r.Next()
	switch {
	case err != nil && msg == nil:
		return nil, err
	case err != nil:
		return [][]byte{msg}, err
	}
	msgs := r.in.msgs[r.in.taken-1 : r.in.cut]
	r.in.taken = r.in.cut
	return msgs, nil
}

// All returns the messages one after the other, as Next does, in less time. A message is valid
// until the loop's next turn. The end of the stream ends the loop; any other error
// comes last, with what Next would return beside it. A loop that was left can be
// taken up again, by All or Next.
func (r *Reader) All() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			msg, err := r.Next()
			if err == io.EOF || !yield(msg, err) || err != nil {
				return
			}
			for in := &r.in; in.taken < in.cut; {
				in.taken++
				if !yield(in.msgs[(in.taken-1)%batch], nil) {
					return
				}
			}
		}
	}
}

// SplitFunc returns the format for a bufio.Scanner. A stream that ends within a
// frame is io.ErrUnexpectedEOF from Scanner.Err. The Scanner's own limit of 64 KiB
// holds for whole frames: see Scanner.Buffer.
func SplitFunc(f Format) bufio.SplitFunc {
	return func(data []byte, atEOF bool) (advance int, token []byte, err error) {
		token, advance, err = f.Next(data)
		if advance == 0 && err == nil && atEOF && len(data) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return advance, token, err
	}
}
