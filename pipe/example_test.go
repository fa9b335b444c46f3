//go:build linux

package pipe_test

import (
	"fmt"
	"io"
	"log"

	"github.com/seed-e1736cc0/ipcbench/pipe"
)

// A stream has no message boundaries, and an end.
func ExamplePair() {
	a, b, err := pipe.Pair(pipe.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	go func() {
		for _, word := range []string{"one ", "signature, ", "two contracts"} {
			if _, err := a.Write([]byte(word)); err != nil {
				log.Print(err)
			}
		}
		if err := a.CloseWrite(); err != nil {
			log.Print(err)
		}
	}()
	text, err := io.ReadAll(b)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", text)
	// Output: one signature, two contracts
}

// In packet mode one Write is one Read.
func ExamplePair_packets() {
	a, b, err := pipe.Pair(pipe.Config{Packets: true})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	for _, message := range []string{"abc", "de", "fghi"} {
		if _, err := a.Write([]byte(message)); err != nil {
			log.Fatal(err)
		}
	}
	p := make([]byte, 4096)
	for range 3 {
		n, err := b.Read(p)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", p[:n])
	}
	// Output:
	// abc
	// de
	// fghi
}
