package framing_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	. "github.com/seed-e1736cc0/ipcbench/framing"
)

// A long message is read where its reader wants it, and so is the next, if it is as long. Whatever the lengths
// are and however much room there is, the messages are those that were written.
func TestLongAndShortMessages(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var messages [][]byte
	for _, n := range []int{65536, 65536, 65535, 65537, 3, 65536, 0, 20_000, 20_000, 20_001, 1, 1, 16_384, 16_385, 16_385, 128, 127, 1 << 20, 1 << 20, 17} {
		messages = append(messages, bytes.Repeat([]byte{byte(len(messages))}, n))
	}
	for range 2000 {
		long := []int{100, 1000, 40_000}[random.IntN(3)]
		messages = append(messages, bytes.Repeat([]byte{byte(len(messages))}, random.IntN(long)))
	}
	for _, s := range streams {
		for _, f := range []Format{LengthPrefix(4, binary.BigEndian, maxMessage), LengthPrefix(2, binary.LittleEndian, maxMessage), Varint(maxMessage)} {
			t.Run(s.name+"+"+f.(interface{ String() string }).String(), func(t *testing.T) {
				x, y, err := s.pair(ipcbench.Netpoll)
				require.NoError(t, err)
				a, b := New(x, f), New(y, f)
				defer a.Close()
				defer b.Close()
				require.NoError(t, a.SetDeadline(time.Now().Add(20*time.Second)))
				require.NoError(t, b.SetDeadline(time.Now().Add(20*time.Second)))
				sent := make(chan error, 1)
				go func() { sent <- sendAll(a, messages) }()
				readAll(t, b, messages, random)
				require.NoError(t, <-sent)
			})
		}
	}
}

// sendAll leaves out what the format cannot carry.
func sendAll(ch *Channel, messages [][]byte) error {
	for _, m := range messages {
		if len(m) > ch.Contract().MaxMessage {
			continue
		}
		if _, err := ch.Write(m); err != nil {
			return err
		}
	}
	return ch.CloseWrite()
}

func readAll(t *testing.T, ch *Channel, messages [][]byte, random *rand.Rand) {
	for i, m := range messages {
		if len(m) > ch.Contract().MaxMessage {
			continue
		}
		room := []int{len(m), len(m) + 1, 1 << 20, max(len(m)-1, 0)}[random.IntN(4)]
		p := make([]byte, room)
		var n int
		err := ipcbench.ErrWouldBlock
		if random.IntN(3) == 0 {
			n, err = ch.TryRead(p)
		}
		if errors.Is(err, ipcbench.ErrWouldBlock) {
			n, err = ch.Read(p)
		}
		if room < len(m) {
			require.ErrorIs(t, err, ipcbench.ErrTruncated)
		} else {
			require.NoError(t, err)
		}
		require.True(t, bytes.Equal(m[:min(room, len(m))], p[:n]), "message %d of %d bytes", i, len(m))
	}
	_, err := ch.Read(make([]byte, 10))
	require.ErrorContains(t, err, "EOF")
}

// What is left of a message that TryWrite has accepted comes before the end, and holds up nobody who only asks.
func TestRestBeforeTheEnd(t *testing.T) {
	for _, s := range streams {
		t.Run(s.name, func(t *testing.T) {
			x, y, err := s.pair(ipcbench.Netpoll)
			require.NoError(t, err)
			a, b := New(x, u32), New(y, u32)
			defer a.Close()
			defer b.Close()
			long := bytes.Repeat([]byte("0123456789abcdef"), maxMessage/16)
			sent := 0
			for err == nil { // tcp has room for some
				if _, err = a.TryWrite(long); err == nil {
					sent++
				}
			}
			require.ErrorIs(t, err, ipcbench.ErrWouldBlock)
			_, err = a.Write(make([]byte, maxMessage+1))
			require.ErrorIs(t, err, ErrFrameTooLarge, "refused without waiting for the rest")
			require.NoError(t, a.CloseWrite())
			_, err = a.Write([]byte("late"))
			require.ErrorIs(t, err, os.ErrClosed)
			_, err = a.TryWrite([]byte("late"))
			require.ErrorIs(t, err, os.ErrClosed)

			time.Sleep(80 * time.Millisecond) // longer than anything waits for the rest
			require.NoError(t, b.SetDeadline(time.Now().Add(20*time.Second)))
			p := make([]byte, maxMessage)
			for range sent {
				n, err := b.Read(p)
				require.NoError(t, err)
				require.True(t, bytes.Equal(long, p[:n]))
			}
			_, err = b.Read(p)
			require.Equal(t, io.EOF, err)
		})
	}
}
