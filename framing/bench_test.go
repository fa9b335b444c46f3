package framing

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"testing"
)

// The formats that are measured, by the name that stands behind format=.
var measured = []Format{
	LengthPrefix(1, binary.BigEndian, math.MaxInt),
	LengthPrefix(2, binary.BigEndian, math.MaxInt),
	LengthPrefix(4, binary.BigEndian, 1<<20),
	LengthPrefix(4, binary.LittleEndian, 1<<20),
	LengthPrefix(8, binary.BigEndian, 1<<20),
	Varint(1 << 20),
	Delimiter([]byte("\n"), 1<<20),
	Delimiter([]byte("\r\n"), 1<<20),
}

// eachFormat runs f for formats and sizes of messages in bytes, with whole frames of a bit less than 64 KiB.
func eachFormat(b *testing.B, formats []Format, sizes []int, f func(b *testing.B, format Format, msg, frames []byte)) {
	for _, format := range formats {
		for _, size := range sizes {
			msg := bytes.Repeat([]byte("x"), size)
			frames, err := format.Append(nil, msg)
			if err != nil {
				continue // longer than the format can say
			}
			frames = bytes.Repeat(frames, 64<<10/len(frames))
			b.Run(fmt.Sprintf("format=%v/size=%d", format, size), func(b *testing.B) { f(b, format, msg, frames) })
		}
	}
}

// One operation is one frame. The loops are over b.N: b.Loop counts in memory, which is a fifth of some of these figures.
func BenchmarkAppend(b *testing.B) {
	eachFormat(b, measured, []int{8, 512}, func(b *testing.B, format Format, msg, frames []byte) {
		dst := make([]byte, 0, len(frames)+len(msg))
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			if len(dst) >= len(frames) {
				dst = dst[:0]
			}
			var err error
			if dst, err = format.Append(dst, msg); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkNext(b *testing.B) {
	eachFormat(b, measured, []int{8, 512}, func(b *testing.B, format Format, msg, frames []byte) {
		data := frames
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			if len(data) == 0 {
				data = frames
			}
			got, size, err := format.Next(data)
			if err != nil || len(got) != len(msg) {
				b.Fatal(len(got), err)
			}
			data = data[size:]
		}
	})
}

// An endless stream of the same bytes, as much at a time as is asked for.
type endless struct {
	data []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.at == len(e.data) {
		e.at = 0
	}
	n := copy(p, e.data[e.at:])
	e.at += n
	return n, nil
}

// BenchmarkReader takes frames from a stream in our two ways and in those of the
// standard library, all with a buffer of the same size.
func BenchmarkReader(b *testing.B) {
	kinds := []Format{measured[2], measured[5], measured[6]} // the other lengths are read alike
	eachFormat(b, kinds, []int{8, 64}, func(b *testing.B, format Format, msg, frames []byte) {
		for _, way := range []struct {
			impl string
			take func(b *testing.B, r io.Reader, format Format, size int)
		}{{"reader", takeNext}, {"all", takeAll}, {"batch", takeBatch}, {"scanner", takeScanner}, {"scanlines", takeLines}, {"readfull", takeReadFull}} {
			if way.impl == "readfull" && fmt.Sprint(format) != "u32" || way.impl == "scanlines" && fmt.Sprint(format) != "lf" {
				continue
			}
			b.Run("impl="+way.impl, func(b *testing.B) {
				b.ReportAllocs()
				way.take(b, &endless{data: frames}, format, len(msg))
			})
		}
	})
}

func takeNext(b *testing.B, r io.Reader, format Format, size int) {
	frames := NewReader(r, format)
	b.ResetTimer()
	for range b.N {
		if msg, err := frames.Next(); err != nil || len(msg) != size {
			b.Fatal(len(msg), err)
		}
	}
}

func takeAll(b *testing.B, r io.Reader, format Format, size int) {
	frames := NewReader(r, format)
	b.ResetTimer()
	left := b.N
	for msg, err := range frames.All() {
		if err != nil || len(msg) != size {
			b.Fatal(len(msg), err)
		}
		if left--; left == 0 {
			return
		}
	}
}

func takeBatch(b *testing.B, r io.Reader, format Format, size int) {
	frames := NewReader(r, format)
	b.ResetTimer()
	for left := b.N; left > 0; {
		msgs, err := frames.NextBatch()
		if err != nil {
			b.Fatal(err)
		}
		for _, msg := range msgs {
			if len(msg) != size {
				b.Fatal(len(msg))
			}
		}
		left -= len(msgs)
	}
}

func takeScanner(b *testing.B, r io.Reader, format Format, size int) {
	scan(b, r, SplitFunc(format), size)
}

func takeLines(b *testing.B, r io.Reader, _ Format, size int) { scan(b, r, bufio.ScanLines, size) }

func scan(b *testing.B, r io.Reader, split bufio.SplitFunc, size int) {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, firstBuffer), firstBuffer)
	s.Split(split)
	b.ResetTimer()
	for range b.N {
		if !s.Scan() || len(s.Bytes()) != size {
			b.Fatal(len(s.Bytes()), s.Err())
		}
	}
}

// takeReadFull is how most programs do it.
func takeReadFull(b *testing.B, r io.Reader, _ Format, size int) {
	buffered := bufio.NewReaderSize(r, firstBuffer)
	head, msg := make([]byte, 4), make([]byte, size)
	b.ResetTimer()
	for range b.N {
		if _, err := io.ReadFull(buffered, head); err != nil {
			b.Fatal(err)
		}
		n := int(binary.BigEndian.Uint32(head))
		if n > len(msg) {
			b.Fatal(n)
		}
		if _, err := io.ReadFull(buffered, msg[:n]); err != nil {
			b.Fatal(err)
		}
	}
}
