//go:build linux

package poller_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/pipe"
	"github.com/seed-e1736cc0/ipcbench/poller"
	"github.com/seed-e1736cc0/ipcbench/tcploop"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

// The trap of edge-triggered waiting, and the way out. Two bytes are written,
// one is read, and the next Wait finds nothing: no new edge, though a byte is left.
func Example_edge() {
	p, err := poller.New(poller.Epoll)
	check(err)
	defer p.Close()
	r, w := newPipe()
	defer unix.Close(r)
	defer unix.Close(w)
	check(p.Add(r, poller.Readable|poller.Edge))

	_, err = unix.Write(w, []byte("ab"))
	check(err)
	events, buf := make([]poller.Event, 8), make([]byte, 1)
	n, err := p.Wait(events, -1)
	check(err)
	fmt.Println("events:", n)

	_, err = unix.Read(r, buf)
	check(err)
	n, err = p.Wait(events, 0)
	check(err)
	fmt.Printf("read %q, events: %d\n", buf, n)

	// Drain reads until EAGAIN, as whoever gets an edge must.
	check(poller.Drain(r, buf, func(p []byte) error {
		fmt.Printf("left: %q\n", p)
		return nil
	}))
	// Output:
	// events: 1
	// read "a", events: 0
	// left: "b"
}

// The limit of 1024 is in libc's fd_set, not in the kernel's select: SelectWide
// takes any number, Select says what it cannot represent.
func Example_descriptorRange() {
	p, err := poller.New(poller.Select)
	check(err)
	defer p.Close()
	err = p.Add(1024, poller.Readable)
	fmt.Println(errors.Is(err, poller.ErrDescriptorRange), err)
	// Output: true poller: add 1024: descriptor outside the set of select
}

// An event loop: one goroutine serves channels of different mechanisms.
func Example_eventLoop() {
	var clients sync.WaitGroup
	s := newServer()
	for _, pair := range []func() (a, b channel){
		func() (a, b channel) { return both(pipe.Pair(pipe.Config{})) },
		func() (a, b channel) { return both(pipe.Pair(pipe.Config{Packets: true})) },
		func() (a, b channel) { return both(unixsock.Pair(unixsock.Stream, unixsock.Config{})) },
		func() (a, b channel) { return both(unixsock.Pair(unixsock.SeqPacket, unixsock.Config{})) },
		func() (a, b channel) { return both(tcploop.Pair(tcploop.Config{})) },
	} {
		served, client := pair()
		check(s.add(served))
		clients.Go(func() { call(client) })
	}
	check(s.run())
	clients.Wait()
	// Unordered output:
	// pipe: HELLO
	// pipe-packet: HELLO
	// unix-stream: HELLO
	// unix-seqpacket: HELLO
	// tcp: HELLO
}

// A channel is what an event loop needs; every Channel of this module has it.
type channel interface {
	ipcbench.Channel
	ipcbench.NonBlocking
	ipcbench.Descriptors
}

// A server answers what it reads in capitals.
type server struct {
	loop     poller.Poller
	channels map[int]channel // by descriptor
	buf      []byte
}

func newServer() *server {
	loop, err := poller.New(poller.Epoll)
	check(err)
	return &server{loop, map[int]channel{}, make([]byte, 4096)}
}

func (s *server) add(ch channel) error {
	s.channels[ch.ReadFD()] = ch
	return s.loop.Add(ch.ReadFD(), poller.Readable|poller.Edge)
}

// run serves until the last channel has ended.
func (s *server) run() error {
	defer s.loop.Close()
	events := make([]poller.Event, 64)
	for len(s.channels) > 0 {
		n, err := s.loop.Wait(events, -1)
		if err != nil {
			return err
		}
		for _, e := range events[:n] {
			// What was done for an earlier event may have ended this channel,
			// and opened another one with the same descriptor.
			if s.loop.Current(e) {
				s.serve(e.FD)
			}
		}
	}
	return nil
}

func (s *server) serve(fd int) {
	ch := s.channels[fd]
	err := poller.DrainFunc(ch.TryRead, s.buf, func(p []byte) error {
		// A server with more to say than a channel has room for would keep the
		// rest, ask for Writable too, and go on at CanWrite.
		_, err := ch.TryWrite(bytes.ToUpper(p))
		return err
	})
	if err == nil {
		return // nothing is left to read
	}
	if err != io.EOF {
		log.Print(err)
	}
	check(s.loop.Remove(fd)) // before Close, which frees the number for others
	delete(s.channels, fd)
	check(ch.Close())
}

// call is a client: it says hello, and ends when it has its answer.
func call(ch channel) {
	defer ch.Close()
	_, err := ch.Write([]byte("hello"))
	check(err)
	answer := make([]byte, 5)
	_, err = io.ReadFull(ch, answer)
	check(err)
	fmt.Printf("%s: %s\n", ch.Contract().Mechanism, answer)
}

func both[C channel](a, b C, err error) (channel, channel) {
	check(err)
	return a, b
}

func newPipe() (r, w int) {
	var p [2]int
	check(unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	return p[0], p[1]
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
