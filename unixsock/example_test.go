//go:build linux

package unixsock_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

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

// A datagram has no end: reader and writer agree on a number of messages here.
func ExampleBind() {
	r, err := unixsock.Bind("@", unixsock.Config{}) // a name of the kernel's choice
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for _, writer := range []string{"first", "second"} {
		c, err := unixsock.Dial(unixsock.Dgram, r.Addr(), unixsock.Config{})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := c.Write([]byte(writer)); err != nil {
			log.Fatal(err)
		}
		c.Close()
	}
	p := make([]byte, 100)
	for range 2 {
		n, err := r.Read(p)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", p[:n])
	}
	// Output:
	// first
	// second
}
