//go:build linux

package unixsock_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

// A server that answers each message, until its client has no more.
func ExampleListen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := unixsock.Listen(unixsock.SeqPacket, filepath.Join(dir, "echo.sock"), unixsock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go echo(l)

	c, err := unixsock.Dial(unixsock.SeqPacket, l.Addr(), unixsock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	p := make([]byte, 100)
	for _, message := range []string{"abc", "de"} {
		if _, err := c.Write([]byte(message)); err != nil {
			log.Fatal(err)
		}
		n, err := c.Read(p)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", p[:n])
	}
	// Output:
	// abc
	// de
}

func echo(l *unixsock.Listener) {
	c, err := l.Accept()
	if err != nil {
		log.Print(err)
		return
	}
	defer c.Close()
	p := make([]byte, 100)
	for {
		n, err := c.Read(p)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			_, err = c.Write(p[:n])
		}
		if err != nil {
			log.Print(err)
			return
		}
	}
}

// A server that serves its own user's processes, and says who comes.
func ExampleListen_peerCheck() {
	l, err := unixsock.Listen(unixsock.Stream, "@", unixsock.Config{ // an abstract name has no permissions
		Accept: func(peer unixsock.Cred) error {
			if peer.UID != os.Getuid() {
				return fmt.Errorf("user %d is refused", peer.UID)
			}
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	client, err := unixsock.Dial(unixsock.Stream, l.Addr(), unixsock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	c, err := l.Accept()
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	peer, err := c.PeerCred()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(peer.PID == os.Getpid())
	// Output:
	// true
}

// A receiver of log lines, from any number of programs. What a Write has accepted
// is never dropped; a writer that rather drops a line than waits for the receiver uses TryWrite, and counts.
func ExampleBind() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r, err := unixsock.Bind(filepath.Join(dir, "log.sock"), unixsock.Config{Mode: 0o622}) // others may write
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		receiveLog(r)
	}()

	for _, program := range []string{"first", "second"} {
		c, err := unixsock.Dial(unixsock.Dgram, r.Addr(), unixsock.Config{})
		if err != nil {
			log.Fatal(err)
		}
		for line := range 2 {
			if _, err := fmt.Fprintf(c, "%s: line %d", program, line+1); err != nil {
				log.Fatal(err)
			}
		}
		c.Close()
	}
	// Nothing tells the receiver that the writers have gone: whoever runs it ends it.
	if err := r.SetReadDeadline(time.Now()); err != nil {
		log.Fatal(err)
	}
	<-done
	// Output:
	// first: line 1
	// first: line 2
	// second: line 1
	// second: line 2
}

// receiveLog prints lines until it is told to end by a deadline, and then those that are there.
func receiveLog(r *unixsock.Channel) {
	p := make([]byte, 8192)
	read := r.Read
	for {
		n, err := read(p)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			read = r.TryRead
			continue
		case errors.Is(err, ipcbench.ErrWouldBlock):
			return
		case errors.Is(err, ipcbench.ErrTruncated): // what has fitted is there
		case err != nil:
			log.Print(err)
			return
		}
		fmt.Printf("%s\n", p[:n])
	}
}
