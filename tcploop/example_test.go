//go:build linux

package tcploop_test

import (
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/seed-e1736cc0/ipcbench/tcploop"
)

func ExampleListen() {
	l, err := tcploop.Listen("127.0.0.1:0", tcploop.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := tcploop.Dial(l.Addr(), tcploop.Config{})
		if err != nil {
			log.Print(err)
			return
		}
		defer c.Close()
		if _, err := c.Write([]byte("hello over loopback")); err != nil {
			log.Print(err)
		}
	}()
	c, err := l.Accept()
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", text)
	// Output: hello over loopback
}

func ExampleDial_notLoopback() {
	_, err := tcploop.Dial("192.0.2.1:80", tcploop.Config{})
	fmt.Println(err, errors.Is(err, tcploop.ErrNotLoopback))
	// Output: tcploop: dial: address "192.0.2.1:80": not a loopback address true
}
