package framing

import (
	"bytes"
	"encoding/hex"
	"math"
)

// Delimiter is the format in which a message is followed by delim, at least one
// byte. The longest message has max bytes, at least 1. A message that contains delim,
// or that would with delim behind it contain it earlier ("ab" before "aba"), is
// ErrFrameInvalid. Nothing is taken off a message: a CR before an LF stays where
// it is. An empty delim or a max below 1 is a Format whose calls all return ErrFrameInvalid.
//
// Its name is lf, crlf, nul, or delim- and delim in hexadecimal.
func Delimiter(delim []byte, max int) Format {
	switch {
	case len(delim) == 0:
		return refuse("an empty delimiter")
	case max < 1:
		return refuse("messages of at most %d bytes, want 1 or more", max)
	}
	return &delimiter{bytes.Clone(delim), int(longest(max, uint64(math.MaxInt-len(delim))))}
}

type delimiter struct {
	delim []byte
	max   int
}

func (f *delimiter) Append(dst, msg []byte) ([]byte, error) {
	if len(msg) > f.max {
		return dst, tooLong(len(msg), uint64(f.max))
	}
	framed := append(append(dst, msg...), f.delim...)
	if f.index(framed[len(dst):]) < len(msg) {
		return dst, failed("append", "a message that contains the delimiter %q: %w", f.delim, ErrFrameInvalid)
	}
	return framed, nil
}

func (f *delimiter) Next(data []byte) (msg []byte, size int, err error) {
	return f.nextFrom(data, 0)
}

func (f *delimiter) cut(data []byte, msgs [][]byte) (n, size int, err error) {
	if len(f.delim) == 1 {
		n, size = cutLines(data, msgs, f.delim[0], f.max)
	}
	return cutRest(f, data, msgs, n, size)
}

// cutLines is cut of a delimiter of one byte. Where messages of one size follow each other, the CPU
// can begin to search for the end of the next one before it has found the end of this one.
func cutLines(data []byte, msgs [][]byte, delim byte, most int) (n, size int) {
	last := most
	for i := range msgs {
		rest := data[size:]
		switch length := bytes.IndexByte(rest, delim); {
		case length == last:
			msgs[i] = rest[:last:last]
			size += last + 1
		case uint(length) > uint(most): // or none
			return i, size
		default:
			msgs[i] = rest[:length:length]
			size += length + 1
			last = length
		}
	}
	return len(msgs), size
}

func (f *delimiter) nextFrom(data []byte, seen int) (msg []byte, size int, err error) {
	most := min(len(data), f.max+len(f.delim))     // a frame that is longer is too large
	from := max(min(seen, most)-len(f.delim)+1, 0) // where a delimiter may have begun that had not ended
	n := f.index(data[from:most])
	switch {
	case n >= 0:
		n += from
		return data[:n:n], n + len(f.delim), nil
	case most == f.max+len(f.delim):
		return nil, 0, failed("next", "no delimiter within %d bytes: %w", most, ErrFrameTooLarge)
	}
	return nil, 0, nil
}

func (f *delimiter) index(data []byte) int {
	if len(f.delim) == 1 {
		return bytes.IndexByte(data, f.delim[0])
	}
	return bytes.Index(data, f.delim)
}

// MaxMessage is the longest message in bytes.
func (f *delimiter) MaxMessage() int  { return f.max }
func (f *delimiter) overhead(int) int { return len(f.delim) }

func (f *delimiter) String() string {
	switch string(f.delim) {
	case "\n":
		return "lf"
	case "\r\n":
		return "crlf"
	case "\x00":
		return "nul"
	}
	return "delim-" + hex.EncodeToString(f.delim)
}
