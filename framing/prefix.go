package framing

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// LengthPrefix is the format in which a message follows its length, an unsigned
// number of width bytes (1, 2, 4 or 8) in the given order. The longest message has
// max bytes, at least 1, or what the number can say if that is less (255 of one
// byte). Another width, a max below 1 or no order is a Format whose calls all return ErrFrameInvalid.
//
// Its name is u8, u16, u32 or u64, with le for the little-endian order.
func LengthPrefix(width int, order binary.ByteOrder, max int) Format {
	switch {
	case width != 1 && width != 2 && width != 4 && width != 8:
		return refuse("a length of %d bytes, want 1, 2, 4 or 8", width)
	case order == nil:
		return refuse("a length without a byte order")
	case max < 1:
		return refuse("messages of at most %d bytes, want 1 or more", max)
	}
	little := width > 1 && order.Uint16([]byte{1, 0}) == 1
	return &prefix{
		width:  width,
		unused: uint(64 - 8*width),
		little: little,
		plain:  width == 4 && !little,
		max:    longest(max, math.MaxUint64>>(64-8*width)),
	}
}

type prefix struct {
	width  int
	unused uint // bits of 64
	little bool
	plain  bool // four bytes, big-endian, as most formats have it
	max    uint64
}

func (f *prefix) Append(dst, msg []byte) ([]byte, error) {
	framed, err := f.appendHeader(dst, len(msg))
	if err != nil {
		return dst, err
	}
	return append(framed, msg...), nil
}

func (f *prefix) Next(data []byte) (msg []byte, size int, err error) {
	if len(data) < f.width {
		return nil, 0, nil
	}
	n := f.length(data)
	if n > f.max {
		return nil, 0, claims(n, f.max)
	}
	size = f.width + int(n)
	if size > len(data) {
		return nil, 0, nil
	}
	return data[f.width:size:size], size, nil
}

func (f *prefix) cut(data []byte, msgs [][]byte) (n, size int, err error) {
	if f.width == 4 {
		n, size = f.cutWords(data, msgs)
	}
	return cutRest(f, data, msgs, n, size)
}

// cutWords is cut of lengths of four bytes. It looks for a header at data[at], and not at the beginning of a shorter
// slice: where the next frame begins depends on the length of this one, and slicing would make that chain longer.
func (f *prefix) cutWords(data []byte, msgs [][]byte) (n, size int) {
	little, most, at := f.little, f.max, uint(0)
	for i := range msgs {
		if at+4 > uint(len(data)) {
			return i, int(at)
		}
		head := uint32(data[at+3])<<24 | uint32(data[at+2])<<16 | uint32(data[at+1])<<8 | uint32(data[at])
		if !little {
			head = bits.ReverseBytes32(head)
		}
		end := at + 4 + uint(head)
		if uint64(head) > most || end > uint(len(data)) {
			return i, int(at)
		}
		msgs[i] = data[at+4 : end : end]
		at = end
	}
	return len(msgs), int(at)
}

func (f *prefix) header(data []byte) (head, body int, err error) {
	if len(data) < f.width {
		return 0, 0, nil
	}
	n := f.length(data)
	if n > f.max {
		return 0, 0, claims(n, f.max)
	}
	return f.width, int(n), nil
}

// length reads the number at the beginning of data: of eight bytes, if they are there, those that count.
func (f *prefix) length(data []byte) uint64 {
	switch {
	case f.plain:
		return uint64(binary.BigEndian.Uint32(data))
	case len(data) < 8:
		return f.lengthOf(data)
	case f.little:
		return binary.LittleEndian.Uint64(data) << (f.unused % 64) >> (f.unused % 64)
	}
	return binary.BigEndian.Uint64(data) >> (f.unused % 64)
}

// lengthOf is length with fewer than eight bytes there.
func (f *prefix) lengthOf(data []byte) uint64 {
	var head [8]byte
	copy(head[:], data)
	return f.length(head[:])
}

func (f *prefix) appendHeader(dst []byte, n int) ([]byte, error) {
	if uint64(n) > f.max {
		return dst, tooLong(n, f.max)
	}
	var head [8]byte
	if f.little {
		binary.LittleEndian.PutUint64(head[:], uint64(n))
	} else {
		binary.BigEndian.PutUint64(head[:], uint64(n)<<f.unused)
	}
	return append(dst, head[:f.width]...), nil
}

// MaxMessage is the longest message in bytes.
func (f *prefix) MaxMessage() int    { return int(f.max) }
func (f *prefix) overhead(n int) int { return f.width }

func (f *prefix) String() string {
	name := fmt.Sprintf("u%d", 8*f.width)
	if f.little {
		name += "le"
	}
	return name
}

func claims(n, max uint64) error {
	return failed("next", "a header that claims %d bytes, at most %d: %w", n, max, ErrFrameTooLarge)
}

func tooLong(n int, max uint64) error {
	return failed("append", "a message of %d bytes, at most %d: %w", n, max, ErrFrameTooLarge)
}
