package framing_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed-e1736cc0/ipcbench/framing"
)

// Three messages in one write, and three messages again.
func Example() {
	f := framing.LengthPrefix(4, binary.BigEndian, 1<<20)
	var stream bytes.Buffer // any io.Reader and io.Writer

	w := framing.NewWriter(&stream, f)
	for _, msg := range []string{"AAA", "BB", "CCCC"} {
		if err := w.Append([]byte(msg)); err != nil {
			fmt.Println(err)
		}
	}
	if err := w.Flush(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(stream.Len(), "bytes")

	for msg, err := range framing.NewReader(&stream, f).All() {
		fmt.Printf("%s %v\n", msg, err)
	}
	// Output:
	// 21 bytes
	// AAA <nil>
	// BB <nil>
	// CCCC <nil>
}

// A message is valid until the next call; AppendNext makes a copy that stays.
func ExampleReader_AppendNext() {
	r := framing.NewReader(strings.NewReader("first\nsecond\n"), framing.Delimiter([]byte("\n"), 100))
	first, err := r.AppendNext(nil)
	if err != nil {
		fmt.Println(err)
	}
	second, err := r.Next()
	fmt.Printf("%s, %s, %v\n", first, second, err)
	// Output: first, second, <nil>
}

// A stream that was cut within a frame does not look like one that has ended.
func ExampleReader_Next() {
	r := framing.NewReader(strings.NewReader("whole\ncut o"), framing.Delimiter([]byte("\n"), 100))
	for {
		msg, err := r.Next()
		fmt.Printf("%q %v\n", msg, err)
		if err != nil {
			fmt.Println(err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF))
			break
		}
	}
	// Output:
	// "whole" <nil>
	// "cut o" unexpected EOF
	// false true
}

// A header that claims too much is refused before there is memory for it.
func ExampleLengthPrefix() {
	f := framing.LengthPrefix(4, binary.BigEndian, 1<<20)
	_, err := framing.NewReader(strings.NewReader("\xff\xff\xff\xff"), f).Next()
	fmt.Println(err)
	fmt.Println(errors.Is(err, framing.ErrFrameTooLarge))
	// Output:
	// framing: next: a header that claims 4294967295 bytes, at most 1048576: frame too large
	// true
}

// A program that has a bufio.Scanner already.
func ExampleSplitFunc() {
	s := bufio.NewScanner(strings.NewReader("\x03one\x03two"))
	s.Split(framing.SplitFunc(framing.Varint(100)))
	for s.Scan() {
		fmt.Println(s.Text())
	}
	fmt.Println(s.Err())
	// Output:
	// one
	// two
	// <nil>
}
