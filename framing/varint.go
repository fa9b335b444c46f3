package framing

import (
	"encoding/binary"
	"math"
)

// Varint is the format in which a message follows its length as encoding/binary's
// Uvarint has it: seven bits a byte, the lowest first. The longest message has max bytes, at least 1. A length
// that overflows 64 bits, or is written with more bytes than it needs, is
// ErrFrameInvalid. A max below 1 is a Format whose calls all return ErrFrameInvalid.
//
// Its name is varint.
func Varint(max int) Format {
	if max < 1 {
		return refuse("messages of at most %d bytes, want 1 or more", max)
	}
	return &varint{longest(max, math.MaxUint64)}
}

type varint struct{ max uint64 }

func (f *varint) Append(dst, msg []byte) ([]byte, error) {
	framed, err := f.appendHeader(dst, len(msg))
	if err != nil {
		return dst, err
	}
	return append(framed, msg...), nil
}

func (f *varint) Next(data []byte) (msg []byte, size int, err error) {
	head, body := 1, 0
	if len(data) > 0 && data[0] < 0x80 && uint64(data[0]) <= f.max {
		body = int(data[0]) // most messages are short
	} else if head, body, err = f.header(data); head == 0 {
		return nil, 0, err
	}
	size = head + body
	if size > len(data) {
		return nil, 0, nil
	}
	return data[head:size:size], size, nil
}

func (f *varint) cut(data []byte, msgs [][]byte) (n, size int, err error) {
	short := uint(min(f.max, 0x7f))
	at := uint(0)
	for n < len(msgs) && at < uint(len(data)) {
		length := uint(data[at])
		body, end := at+1, at+1+length
		if length > short || end > uint(len(data)) {
			break
		}
		msgs[n] = data[body:end:end]
		at = end
		n++
	}
	return cutRest(f, data, msgs, n, int(at))
}

func (f *varint) header(data []byte) (head, body int, err error) {
	n, head := binary.Uvarint(data)
	switch {
	case head < 0, head == 0 && len(data) >= binary.MaxVarintLen64: // Uvarint wants to see an eleventh byte
		return 0, 0, failed("next", "a length above 64 bits: %w", ErrFrameInvalid)
	case head > 1 && data[head-1] == 0:
		return 0, 0, failed("next", "a length with more bytes than it needs: %w", ErrFrameInvalid)
	case n > f.max:
		return 0, 0, claims(n, f.max)
	}
	return head, int(n), nil
}

func (f *varint) appendHeader(dst []byte, n int) ([]byte, error) {
	if uint64(n) > f.max {
		return dst, tooLong(n, f.max)
	}
	return binary.AppendUvarint(dst, uint64(n)), nil
}

// MaxMessage is the longest message in bytes.
func (f *varint) MaxMessage() int { return int(f.max) }

func (f *varint) overhead(n int) int {
	var head [binary.MaxVarintLen64]byte
	return binary.PutUvarint(head[:], uint64(n))
}

func (f *varint) String() string { return "varint" }
