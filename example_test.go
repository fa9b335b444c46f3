//go:build linux

package ipcbench_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/pipe"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

// A conversation over any Channel, with its end: the client asks, says that it
// has no more questions, and reads answers until the server has none.
func Example() {
	client, server, err := pipe.Pair(pipe.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go shout(server)

	fmt.Fprint(client, "hello")
	if err := client.CloseWrite(); err != nil {
		log.Fatal(err)
	}
	answer, err := io.ReadAll(client)
	fmt.Printf("%s %v\n", answer, err)
	fmt.Println(client.Close())
	// Output:
	// HELLO <nil>
	// <nil>
}

// shout answers in capitals until the other end has said all.
func shout(ch ipcbench.Channel) {
	defer ch.Close()
	buf := make([]byte, 100)
	for {
		n, err := ch.Read(buf)
		if err != nil {
			return // io.EOF, or the client is gone
		}
		for i, c := range buf[:n] {
			if 'a' <= c && c <= 'z' {
				buf[i] = c - 'a' + 'A'
			}
		}
		if _, err := ch.Write(buf[:n]); err != nil {
			return
		}
	}
}

// The same three writes are one read on a stream and three where there are
// boundaries; and where there is no end, a loop "until the end" needs another
// way out. The code asks the Contract and never the type.
func ExampleContract() {
	stream, streamEnd, err := unixsock.Pair(unixsock.Stream, unixsock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	dgram, dgramEnd, err := unixsock.Pair(unixsock.Dgram, unixsock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, pair := range [][2]ipcbench.Channel{{stream, streamEnd}, {dgram, dgramEnd}} {
		for _, text := range []string{"AAA", "BB", "CCCC"} {
			fmt.Fprint(pair[0], text)
		}
		pair[0].Close()
		fmt.Println(pair[1].Contract().Mechanism, readAll(pair[1]))
		pair[1].Close()
	}
	// Output:
	// unix-stream [AAABBCCCC]
	// unix-dgram [AAA BB CCCC]
}

// readAll reads until the end, or where there is none until nothing has come for a while.
func readAll(ch ipcbench.Channel) (reads []string) {
	buf := make([]byte, 100)
	for {
		if !ch.Contract().EndOfStream {
			ch.(ipcbench.Deadliner).SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		}
		n, err := ch.Read(buf)
		switch {
		case err == io.EOF:
			return reads
		case errors.Is(err, ipcbench.ErrTruncated):
			log.Fatal("a message longer than the buffer")
		case err != nil:
			return reads // the deadline
		}
		reads = append(reads, string(buf[:n]))
	}
}
