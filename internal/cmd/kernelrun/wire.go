//go:build linux

package main

import (
	"encoding/gob"
	"io"
	"sync"
)

// A message is what the guest says to the host, over a serial port of its own
// where no message of the kernel gets in between.
type message struct {
	Kind   kind
	Data   []byte // of stdout, stderr; ready: the kernel's release; failed: the cause
	Status int    // of exited
}

type kind int

const (
	ready  kind = iota + 1 // the guest is set up, the test binary comes next
	stdout                 // what it wrote
	stderr
	exited // the end
	failed // there will be none: the guest could not be set up
)

// A wire sends messages; several goroutines may.
type wire struct {
	mu  sync.Mutex
	enc *gob.Encoder
}

func newWire(w io.Writer) *wire { return &wire{enc: gob.NewEncoder(w)} }

func (w *wire) send(m message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enc.Encode(m)
}

// stream sends what it is given as messages of a kind.
type stream struct {
	wire *wire
	kind kind
}

func (s stream) Write(p []byte) (int, error) {
	return len(p), s.wire.send(message{Kind: s.kind, Data: p})
}

// receive passes on messages until one ends the conversation, or the guest does: then it is an error.
func receive(r io.Reader, handle func(message) error) error {
	dec := gob.NewDecoder(r)
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			return err
		}
		if err := handle(m); err != nil {
			return err
		}
		if m.Kind == exited || m.Kind == failed {
			return nil
		}
	}
}
