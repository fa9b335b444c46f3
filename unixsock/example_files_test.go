//go:build linux

package unixsock_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"

	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

// A file that only one party may open is passed to another one, which reads it.
func ExampleChannel_SendFiles() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "secret")
	if err := os.WriteFile(path, []byte("hidden treasure"), 0o600); err != nil {
		log.Fatal(err)
	}
	a, b, err := unixsock.Pair(unixsock.SeqPacket, unixsock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	defer b.Close()

	f, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	if err := a.SendFiles([]byte("read this"), f); err != nil {
		log.Fatal(err)
	}
	f.Close() // the file lives on at the other end

	p := make([]byte, 100)
	n, files, err := b.RecvFiles(p, 1)
	if err != nil {
		log.Fatal(err)
	}
	if len(files) != 1 {
		log.Fatal("no file came")
	}
	defer files[0].Close()
	content, err := io.ReadAll(files[0])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", p[:n], content)
	// Output:
	// read this: hidden treasure
}

// A server accepts connections and hands each over to a worker, as a rule another process, which answers.
func ExampleChannel_SendFiles_handOver() {
	server, worker, err := unixsock.Pair(unixsock.SeqPacket, unixsock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	go work(worker)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			if err := handOver(server, c.(*net.TCPConn)); err != nil {
				log.Print(err)
			}
		}
	}()

	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	answer, err := io.ReadAll(client)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", answer)
	// Output:
	// hello from the worker
}

// handOver gives a connection to whoever reads from ch, and keeps nothing of it.
func handOver(ch *unixsock.Channel, c *net.TCPConn) error {
	defer c.Close()
	f, err := c.File()
	if err != nil {
		return err
	}
	defer f.Close()
	return ch.SendFiles(nil, f)
}

// work answers the connections that are handed to it, until there are no more.
func work(ch *unixsock.Channel) {
	defer ch.Close()
	for {
		_, files, err := ch.RecvFiles(nil, 1)
		if err != nil {
			if err != io.EOF {
				log.Print(err)
			}
			return
		}
		for _, f := range files {
			c, err := net.FileConn(f)
			f.Close() // c has its own
			if err != nil {
				log.Print(err)
				continue
			}
			fmt.Fprint(c, "hello from the worker")
			c.Close()
		}
	}
}
