//go:build linux

package unixsock_test

import (
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

// A datagram has no end, and a Read waits for ever for a writer that has gone.
// The first way out: reader and writer agree on a number of messages.
func ExamplePair_count() {
	a, b := datagrams("one", "two", "three")
	a.Close()
	defer b.Close()
	p := make([]byte, 100)
	for range 3 {
		n, err := b.Read(p)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", p[:n])
	}
	// Output:
	// one
	// two
	// three
}

// The second way out of a Read without an end: both agree on a message that is the end.
func ExampleTerminated() {
	a, b, err := unixsock.Pair(unixsock.Dgram, unixsock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	w, err := unixsock.Terminated(a)
	if err != nil {
		log.Fatal(err)
	}
	r, err := unixsock.Terminated(b)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for _, message := range []string{"one", "two", "three"} {
		if _, err := w.Write([]byte(message)); err != nil {
			log.Fatal(err)
		}
	}
	w.Close()
	p := make([]byte, 100)
	for {
		n, err := r.Read(p)
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", p[:n])
	}
	// Output:
	// one
	// two
	// three
}

// The third way out of a Read without an end: take what is there, and do not wait for more.
func ExamplePair_tryRead() {
	a, b := datagrams("one", "two", "three")
	a.Close()
	defer b.Close()
	p := make([]byte, 100)
	for {
		n, err := b.TryRead(p)
		if errors.Is(err, ipcbench.ErrWouldBlock) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", p[:n])
	}
	// Output:
	// one
	// two
	// three
}

// datagrams returns two ends, of which the first has written messages to the second.
func datagrams(messages ...string) (a, b *unixsock.Channel) {
	a, b, err := unixsock.Pair(unixsock.Dgram, unixsock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range messages {
		if _, err := a.Write([]byte(m)); err != nil {
			log.Fatal(err)
		}
	}
	return a, b
}
