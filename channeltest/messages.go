//go:build linux

package channeltest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/framing"
)

// Messages measures small messages from a producer in one process to a consumer
// in another, both on non-blocking descriptors with edge-triggered epoll(7), as event loops have
// them. A mechanism that keeps boundaries carries the messages bare; on the others each has
// four bytes of length before it, and the mechanism is called pipe+u32 and the like. batch=64
// gathers 64 messages: on a stream in one write, else in one sendmmsg(2), received by recvmmsg(2).
//
// One operation is one message. The consumer checks the number that each carries: one
// lost, doubled or out of order fails the row. prod-cpu-ns/op and cons-cpu-ns/op are the
// CPU time of the two apart.
func Messages(b *testing.B, mechs ...Mechanism) { runRows(b, messaging, mechs) }

// maxBatch is how many messages are gathered, and at most received at once.
const maxBatch = 64

// A courier moves numbered messages over bare non-blocking descriptors. It is
// the wire of its party too, for the words before and after.
type courier struct {
	r, w               uintptr
	readable, writable poll
	boundaries         bool
	size               int // of a message
	batch              int

	next     uint64 // number of the next message
	format   framing.Format
	out      []byte // frames or bare messages, one behind the other
	stride   int    // from one to the next in out
	in       []byte // what was read
	sending  []mmsghdr
	received []mmsghdr
}

func newCourier(ch ipcbench.Channel, size, batch int) (*courier, error) {
	d, ok := ch.(ipcbench.Descriptors)
	if !ok {
		return nil, fmt.Errorf("the channel has no descriptors: %w", errors.ErrUnsupported)
	}
	c := &courier{r: uintptr(d.ReadFD()), w: uintptr(d.WriteFD()), boundaries: ch.Contract().Boundaries, size: size, batch: batch}
	if err := errors.Join(c.readable.open(d.ReadFD(), unix.EPOLLIN), c.writable.open(d.WriteFD(), unix.EPOLLOUT)); err != nil {
		return nil, err
	}
	c.format = framing.LengthPrefix(4, binary.BigEndian, size)
	message := make([]byte, size)
	for range batch {
		var err error
		if c.boundaries {
			c.out = append(c.out, message...)
		} else if c.out, err = c.format.Append(c.out, message); err != nil {
			return nil, err
		}
	}
	c.stride = len(c.out) / batch
	c.in = make([]byte, max(64<<10, maxBatch*size))
	c.sending = vectors(c.out, size, batch)
	c.received = vectors(c.in, size, maxBatch)
	return c, nil
}

// number gives the next k messages their numbers.
func (c *courier) number(k int) {
	for i := range k {
		end := (i + 1) * c.stride
		binary.LittleEndian.PutUint64(c.out[end-c.size:], c.next)
		c.next++
	}
}

// produce sends n messages.
func (c *courier) produce(n int) error {
	for n > 0 {
		k := min(n, c.batch)
		c.number(k)
		var err error
		if c.boundaries && c.batch > 1 {
			err = c.sendMany(c.sending[:k])
		} else {
			err = c.write(c.out[:k*c.stride])
		}
		if err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// consume receives n messages.
func (c *courier) consume(n int) error {
	switch {
	case !c.boundaries:
		return c.consumeFrames(n)
	case c.batch > 1:
		return c.consumeMany(n)
	}
	for range n {
		got, err := c.read(c.in)
		if err == nil {
			err = c.check(c.in[:got])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *courier) consumeFrames(n int) error {
	kept := 0
	for n > 0 {
		got, err := c.read(c.in[kept:])
		if err != nil {
			return err
		}
		data := c.in[:kept+got]
		for {
			message, size, err := c.format.Next(data)
			if err != nil {
				return err
			}
			if size == 0 {
				break
			}
			if err := c.check(message); err != nil {
				return err
			}
			data = data[size:]
			n--
		}
		kept = copy(c.in, data)
	}
	if n < 0 || kept > 0 {
		return fmt.Errorf("%d messages and %d bytes too many have arrived", -n, kept)
	}
	return nil
}

func (c *courier) consumeMany(n int) error {
	for n > 0 {
		k, err := c.receiveMany(c.received[:min(n, maxBatch)])
		if err != nil {
			return err
		}
		for i := range k {
			if err := c.check(c.in[i*c.size:][:c.received[i].n]); err != nil {
				return err
			}
		}
		n -= k
	}
	return nil
}

var errTooShort = errors.New("a message is too short for its number")

func (c *courier) check(message []byte) error {
	if len(message) < 8 {
		return errTooShort
	}
	number := binary.LittleEndian.Uint64(message)
	if len(message) != c.size || number != c.next {
		return fmt.Errorf("message %d with %d bytes arrived, due was %d with %d", number, len(message), c.next, c.size)
	}
	c.next++
	return nil
}

func (c *courier) write(p []byte) error {
	for len(p) > 0 {
		n, err := c.writable.call(unix.SYS_WRITE, c.w, unsafe.Pointer(unsafe.SliceData(p)), uintptr(len(p)), 0)
		if err != nil {
			return os.NewSyscallError("write", err)
		}
		p = p[n:]
	}
	return nil
}

func (c *courier) read(p []byte) (int, error) {
	n, err := c.readable.call(unix.SYS_READ, c.r, unsafe.Pointer(unsafe.SliceData(p)), uintptr(len(p)), 0)
	switch {
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c *courier) messages() bool { return c.boundaries }
