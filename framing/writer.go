package framing

import "io"

// A Writer puts messages into frames, and gathers as many as one likes for one write. It
// must not be used by several goroutines at once.
type Writer struct {
	w   io.Writer
	f   Format
	buf []byte
}

// NewWriter returns a Writer of frames to w.
func NewWriter(w io.Writer, f Format) *Writer { return &Writer{w: w, f: f} }

// Write sends msg in a frame, behind what was gathered, in one write. It returns
// len(msg), or 0 and an error: of Append, then nothing was sent or gathered, or of
// Flush, then the frame stays gathered.
func (w *Writer) Write(msg []byte) (int, error) {
	if err := w.Append(msg); err != nil {
		return 0, err
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	return len(msg), nil
}

// Append gathers msg in a frame, in memory, until Flush or Write. A message that
// the format refuses is ErrFrameTooLarge or ErrFrameInvalid, and changes nothing.
func (w *Writer) Append(msg []byte) (err error) {
	w.buf, err = w.f.Append(w.buf, msg)
	return err
}

// Buffered returns how many bytes are gathered.
func (w *Writer) Buffered() int { return len(w.buf) }

// Flush sends all that was gathered in one write. What an error leaves unsent stays
// gathered, from within a frame if need be, and the next Flush goes on there.
func (w *Writer) Flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	n, err := w.w.Write(w.buf)
	if uint(n) > uint(len(w.buf)) {
		return failed("write", "a count of %d for %d bytes: %w", n, len(w.buf), io.ErrShortWrite)
	}
	if n < len(w.buf) && err == nil {
		err = &opError{"write", io.ErrShortWrite}
	}
	w.buf = w.buf[:copy(w.buf, w.buf[n:])]
	return err
}
