package framing

import (
	"fmt"
	"math"
)

// A Format says how a frame is made of a message, and found again in a stream
// of bytes. Those of this package keep no state: one value serves any number of
// goroutines.
//
// A Format of one's own may have two further methods, which New asks for: String() string, the
// format's name in Contract().Mechanism, and MaxMessage() int, the longest message in bytes.
type Format interface {
	// Append returns dst with one frame added that carries msg, or dst as it was and
	// an error: ErrFrameTooLarge, or ErrFrameInvalid for a message that the format cannot carry.
	Append(dst, msg []byte) ([]byte, error)
	// Next returns the message of the frame that data begins with, a part of
	// data, and the frame's size in bytes. A size of 0 and no error: the frame is not
	// complete yet. An error is final: there is no way to tell where the next frame
	// begins. It is ErrFrameTooLarge or ErrFrameInvalid, as soon as the bytes show it.
	Next(data []byte) (msg []byte, size int, err error)
}

// A sized format says at the beginning of a frame how long it is going to be.
type sized interface {
	// header returns the length of the header that data begins with, and of the
	// message that it announces; 0, 0 if the header is not complete.
	header(data []byte) (head, body int, err error)
	// appendHeader adds the header of a message of n bytes, or refuses the length.
	appendHeader(dst []byte, n int) ([]byte, error)
}

// A resumable format goes on where it had searched for the end of a frame.
// Otherwise a frame that comes in n pieces would be searched n times.
type resumable interface {
	// nextFrom is Next of data whose first seen bytes hold no whole frame.
	nextFrom(data []byte, seen int) (msg []byte, size int, err error)
}

// A cutter finds many frames at once, in less time than one by one.
type cutter interface {
	// cut puts the messages of whole frames that data begins with into msgs, and returns how many
	// they are and how many bytes their frames have. If there are none it returns what Next does.
	cut(data []byte, msgs [][]byte) (n, size int, err error)
}

// oneByOne is the cutter of any format.
type oneByOne struct{ Format }

func (f oneByOne) cut(data []byte, msgs [][]byte) (n, size int, err error) {
	return cutRest(f, data, msgs, 0, 0)
}

// cutRest goes on with cut behind n messages of size bytes.
func cutRest(f Format, data []byte, msgs [][]byte, n, size int) (int, int, error) {
	for n < len(msgs) {
		msg, more, err := f.Next(data[size:])
		if err != nil || uint(more-1) >= uint(len(data)-size) {
			if n > 0 {
				break // Next says so again
			}
			return 0, more, err
		}
		msgs[n] = msg
		n++
		size += more
	}
	return n, size, nil
}

// A bounded format knows its limits: what New puts into the Contract.
type bounded interface {
	MaxMessage() int
	// overhead is how much longer than a message of n bytes its frame is.
	overhead(n int) int
}

// longest is the limit that a max stands for in a format that could say most.
// What a frame adds to it fits an int too.
func longest(max int, most uint64) uint64 {
	return min(uint64(max), most, math.MaxInt-1<<20)
}

// A refusal stands for a format that makes no sense. There is no byte that it
// would read or write.
type refusal struct{ err error }

func refuse(format string, args ...any) Format {
	return refusal{failed("format", "%w: %w", fmt.Errorf(format, args...), ErrFrameInvalid)}
}

func (f refusal) Append(dst, _ []byte) ([]byte, error)     { return dst, f.err }
func (f refusal) Next([]byte) (msg []byte, _ int, _ error) { return nil, 0, f.err }
func (f refusal) String() string                           { return "invalid" }
