package framing_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	. "github.com/seed-e1736cc0/ipcbench/framing"
)

const limit = 1000

// formats are all kinds, with messages of at most limit bytes.
var formats = []Format{
	LengthPrefix(1, binary.BigEndian, limit),
	LengthPrefix(2, binary.BigEndian, limit),
	LengthPrefix(2, binary.LittleEndian, limit),
	LengthPrefix(4, binary.BigEndian, limit),
	LengthPrefix(4, binary.LittleEndian, limit),
	LengthPrefix(8, binary.BigEndian, limit),
	LengthPrefix(8, binary.LittleEndian, limit),
	Varint(limit),
	Delimiter([]byte("\n"), limit),
	Delimiter([]byte("\r\n"), limit),
	Delimiter([]byte("aab"), limit),
	Delimiter([]byte("abab"), limit),
}

// A pieces hands out data in reads of the given sizes, in turn.
type pieces struct {
	data  []byte
	sizes []byte
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := len(p.data)
	if len(p.sizes) > 0 {
		n = min(n, 1+int(p.sizes[0]))
		p.sizes = append(p.sizes[1:], p.sizes[0])
	}
	n = copy(b, p.data[:n])
	p.data = p.data[n:]
	return n, nil
}

// outcome is what a Reader makes of a stream: its messages, and how it ends.
func outcome(r io.Reader, f Format) (messages []string, rest string, err error) {
	reader := NewReader(r, f)
	for {
		msg, err := reader.Next()
		if err != nil {
			return messages, string(msg), err
		}
		messages = append(messages, string(msg))
	}
}

func requireSame(t *testing.T, f Format, data, sizes []byte) {
	whole, rest, err := outcome(&pieces{data: data}, f)
	cut, cutRest, cutErr := outcome(&pieces{data, bytes.Clone(sizes)}, f)
	require.Equal(t, whole, cut)
	require.Equal(t, rest, cutRest)
	require.Equal(t, err, cutErr)

	for _, msg := range whole {
		one, size, err := f.Next(data)
		require.NoError(t, err)
		require.Equal(t, msg, string(one))
		data = data[size:]
	}
	_, size, err := f.Next(data)
	require.True(t, size == 0 || err != nil, "a frame that was not taken")
}

func TestFramesHoweverTheyAreCut(t *testing.T) {
	messages := []string{"", "a", "xaaa", "\r", "3 bytes and\rmore", strings.Repeat("z", 200), "ab"}
	for _, f := range formats {
		var stream []byte
		var carried []string
		for _, m := range messages {
			framed, err := f.Append(stream, []byte(m))
			if errors.Is(err, ErrFrameInvalid) {
				continue // contains the delimiter
			}
			require.NoError(t, err)
			stream, carried = framed, append(carried, m)
		}
		for at := range len(stream) {
			got, rest, err := outcome(io.MultiReader(bytes.NewReader(stream[:at]), bytes.NewReader(stream[at:])), f)
			require.Equal(t, carried, got)
			require.Empty(t, rest)
			require.Equal(t, io.EOF, err)
		}
		got, _, err := outcome(iotest.OneByteReader(bytes.NewReader(stream)), f)
		require.Equal(t, carried, got)
		require.Equal(t, io.EOF, err)
		got, _, err = outcome(iotest.DataErrReader(bytes.NewReader(stream)), f)
		require.Equal(t, carried, got)
		require.Equal(t, io.EOF, err)

		// The same by All, and by a Scanner.
		var all []string
		for msg, err := range NewReader(bytes.NewReader(stream), f).All() {
			require.NoError(t, err)
			all = append(all, string(msg))
		}
		require.Equal(t, carried, all)

		// And by batches.
		var batched []string
		r := NewReader(iotest.HalfReader(bytes.NewReader(stream)), f)
		for {
			msgs, err := r.NextBatch()
			if err != nil {
				require.Equal(t, io.EOF, err)
				require.Empty(t, msgs)
				break
			}
			for _, msg := range msgs {
				batched = append(batched, string(msg))
			}
		}
		require.Equal(t, carried, batched)
		scanner := bufio.NewScanner(bytes.NewReader(stream))
		scanner.Split(SplitFunc(f))
		var scanned []string
		for scanner.Scan() {
			scanned = append(scanned, scanner.Text())
		}
		require.NoError(t, scanner.Err())
		require.Equal(t, carried, scanned)
	}
}

func TestCutStream(t *testing.T) {
	for name, c := range map[string]struct {
		f          Format
		data, rest string
		err        error
	}{
		"between frames":         {formats[3], "\x00\x00\x00\x01a", "", io.EOF},
		"in a header":            {formats[3], "\x00\x00", "", io.ErrUnexpectedEOF},
		"after a header":         {formats[3], "\x00\x00\x00\x05", "", io.ErrUnexpectedEOF},
		"in a message":           {formats[3], "\x00\x00\x00\x05abc", "abc", io.ErrUnexpectedEOF},
		"an unterminated line":   {formats[8], "one\ntwo", "two", io.ErrUnexpectedEOF},
		"a varint's first byte":  {formats[7], "\x80", "", io.ErrUnexpectedEOF},
		"a delimiter's first CR": {formats[9], "one\r\ntwo\r", "two\r", io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			_, rest, err := outcome(strings.NewReader(c.data), c.f)
			require.Equal(t, c.rest, rest)
			require.ErrorIs(t, err, c.err)
		})
	}
}

// What a header claims is refused before there is memory for it, and for good.
func TestClaims(t *testing.T) {
	for name, c := range map[string]struct {
		f    Format
		data string
		err  error
	}{
		"u32 all ones":           {formats[3], "\xff\xff\xff\xff", ErrFrameTooLarge},
		"u32 top bit":            {formats[3], "\x80\x00\x00\x00", ErrFrameTooLarge},
		"u32 one too many":       {formats[3], "\x00\x00\x03\xe9", ErrFrameTooLarge},
		"u64 top bit":            {formats[5], "\x80\x00\x00\x00\x00\x00\x00\x00", ErrFrameTooLarge},
		"u64 -1":                 {formats[6], "\xff\xff\xff\xff\xff\xff\xff\xff", ErrFrameTooLarge},
		"varint never ends":      {formats[7], strings.Repeat("\x80", 20), ErrFrameInvalid},
		"varint overflows":       {formats[7], strings.Repeat("\xff", 9) + "\x02", ErrFrameInvalid},
		"varint -1":              {formats[7], strings.Repeat("\xff", 9) + "\x01", ErrFrameTooLarge},
		"varint overlong":        {formats[7], "\x81\x00a", ErrFrameInvalid},
		"a line too long":        {formats[8], strings.Repeat("x", limit+1) + "\nnext\n", ErrFrameTooLarge},
		"a line without end":     {formats[8], strings.Repeat("x", 1<<20), ErrFrameTooLarge},
		"invalid format":         {LengthPrefix(3, binary.BigEndian, 1), "abc", ErrFrameInvalid},
		"no delimiter":           {Delimiter(nil, 1), "abc", ErrFrameInvalid},
		"no room for a message":  {Varint(0), "abc", ErrFrameInvalid},
		"a prefix with no order": {LengthPrefix(4, nil, 1), "abc", ErrFrameInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(io.MultiReader(strings.NewReader(c.data), strings.NewReader("\x00\x00\x00\x01a")), c.f)
			for range 3 { // final
				msg, err := r.Next()
				require.ErrorIs(t, err, c.err)
				require.Empty(t, msg)
				require.ErrorContains(t, err, "framing: ")
			}
		})
	}
	require.ErrorIs(t, ErrFrameTooLarge, ipcbench.ErrMessageTooLong)
}

// A peer that sends only a header gets 64 KiB at most, whatever it claims within the limit.
func TestMemoryOfAHeader(t *testing.T) {
	f := LengthPrefix(4, binary.BigEndian, math.MaxInt32)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := outcome(strings.NewReader("\x7f\xff\xff\xff"), f)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10))
}

func TestLimits(t *testing.T) {
	for _, f := range formats {
		most := limit
		if f == formats[0] {
			most = 255
		}
		dst := []byte("before")
		framed, err := f.Append(dst, bytes.Repeat([]byte("x"), most))
		require.NoError(t, err)
		msg, size, err := f.Next(framed[len(dst):])
		require.NoError(t, err)
		require.Len(t, msg, most)
		require.Equal(t, len(framed)-len(dst), size)

		refused, err := f.Append(dst, bytes.Repeat([]byte("x"), most+1))
		require.ErrorIs(t, err, ErrFrameTooLarge)
		require.Equal(t, dst, refused)
	}
}

func TestDelimiterRefusesItself(t *testing.T) {
	for f, msg := range map[Format]string{formats[8]: "a\nb", formats[9]: "a\r\n", formats[10]: "xaaab", formats[11]: "ab"} {
		out, err := f.Append(nil, []byte(msg))
		if f == formats[11] && err == nil {
			continue
		}
		require.ErrorIs(t, err, ErrFrameInvalid)
		require.Empty(t, out)
	}
	got, _, err := outcome(strings.NewReader("xaaab"), formats[10]) // "aab" overlaps itself
	require.Equal(t, []string{"xa"}, got)
	require.Equal(t, io.EOF, err)
	got, _, _ = outcome(strings.NewReader("one\r\n"), formats[8])
	require.Equal(t, []string{"one\r"}, got, "a CR stays where it is")
}

// A stumbling stream takes what it has room for.
type stumbling struct {
	bytes.Buffer
	room int
}

func (s *stumbling) Write(p []byte) (int, error) {
	n, _ := s.Buffer.Write(p[:min(len(p), s.room)])
	if s.room -= n; n < len(p) {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

func TestWriterGathersAndGoesOn(t *testing.T) {
	f := formats[3]
	s := &stumbling{room: 7}
	w := NewWriter(s, f)
	require.NoError(t, w.Append([]byte("one")))
	require.NoError(t, w.Append([]byte("two")))
	require.ErrorIs(t, w.Append(make([]byte, limit+1)), ErrFrameTooLarge)
	require.Equal(t, 14, w.Buffered())
	require.ErrorIs(t, w.Flush(), io.ErrShortBuffer)
	require.Equal(t, 7, w.Buffered())
	s.room = 100
	n, err := w.Write([]byte("three"))
	require.NoError(t, err)
	require.Equal(t, 5, n)
	got, _, err := outcome(&s.Buffer, f)
	require.Equal(t, []string{"one", "two", "three"}, got)
	require.Equal(t, io.EOF, err)
}

// However messages are taken, each is taken once and in order.
func TestWaysOfTakingMix(t *testing.T) {
	var stream []byte
	const messages = 1000
	for i := range messages {
		stream, _ = formats[3].Append(stream, []byte(strconv.Itoa(i)))
	}
	r := NewReader(bytes.NewReader(append(stream, "\x00\x00\x00\x03ab"...)), formats[3])
	var got []string
	take := func(msg []byte, err error) {
		require.NoError(t, err)
		got = append(got, string(msg))
	}
	for len(got) < messages-70 {
		take(r.Next())
		for msg, err := range r.All() {
			take(msg, err)
			if len(got)%7 == 0 {
				take(r.Next())
				break
			}
		}
	}
	for {
		msgs, err := r.NextBatch()
		if err != nil {
			require.Equal(t, io.ErrUnexpectedEOF, err)
			require.Equal(t, [][]byte{[]byte("ab")}, msgs)
			break
		}
		for _, msg := range msgs {
			take(msg, nil)
		}
	}
	for i, msg := range got {
		require.Equal(t, strconv.Itoa(i), msg)
	}
	require.Len(t, got, messages)
}

func TestAppendNextCopies(t *testing.T) {
	r := NewReader(strings.NewReader("one\ntwo\n"), formats[8])
	first, err := r.AppendNext([]byte("> "))
	require.NoError(t, err)
	_, err = r.Next()
	require.NoError(t, err)
	require.Equal(t, "> one", string(first))
}

// Any bytes, cut anywhere, are the same frames as in one piece.
func FuzzCuts(f *testing.F) {
	f.Add(uint8(3), []byte("\x00\x00\x00\x01a\x00\x00\x00\x00"), []byte{0})
	f.Add(uint8(7), []byte("\x03abc\x81\x00"), []byte{0, 1})
	f.Add(uint8(10), []byte("xaaab"), []byte{2, 0})
	f.Fuzz(func(t *testing.T, which uint8, data, sizes []byte) {
		requireSame(t, formats[int(which)%len(formats)], data, sizes)
	})
}

// What is put into a frame comes out of it, and of no other bytes.
func FuzzRoundTrip(f *testing.F) {
	f.Add(uint8(0), []byte("message"), []byte("behind"))
	f.Add(uint8(11), []byte("aba"), []byte("b"))
	f.Fuzz(func(t *testing.T, which uint8, msg, behind []byte) {
		format := formats[int(which)%len(formats)]
		framed, err := format.Append(nil, msg)
		if err != nil {
			require.Empty(t, framed)
			return
		}
		got, size, err := format.Next(append(bytes.Clone(framed), behind...))
		require.NoError(t, err)
		require.Equal(t, len(framed), size)
		require.True(t, bytes.Equal(msg, got))
		for at := range framed { // and no part of it is a frame
			_, size, err := format.Next(framed[:at])
			require.NoError(t, err)
			require.Zero(t, size)
		}
	})
}
