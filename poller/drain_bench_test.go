//go:build linux

package poller

import (
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkDrain consumes the same burst of 16 messages of 64 bytes in two
// ways: a wait and a read for each message, or one wait and then reads until EAGAIN.
func BenchmarkDrain(b *testing.B) {
	const burst, size = 16, 64
	message, buf := make([]byte, size), make([]byte, size)
	for _, trigger := range []struct {
		name string
		in   Interest
	}{{"level", Readable}, {"edge", Readable | Edge}} {
		b.Run("trigger="+trigger.name, func(b *testing.B) {
			s := newScene(b, mechanism{kind: Epoll, in: trigger.in}, 1)
			r, w := s.readers[0], s.writers[0]
			waits, reads, left := 0, 0, 0
			consume := func(p []byte) error {
				left -= len(p)
				reads++
				return nil
			}
			withCosts(b)
			for b.Loop() {
				for range burst {
					if _, err := unix.Write(w, message); err != nil {
						b.Fatal(err)
					}
				}
				for left = burst * size; left > 0; waits++ {
					s.wait(1)
					if trigger.in&Edge == 0 {
						n, err := unix.Read(r, buf)
						if err != nil {
							b.Fatal(err)
						}
						consume(buf[:n])
						continue
					}
					if err := Drain(r, buf, consume); err != nil {
						b.Fatal(err)
					}
					reads++ // the one that said EAGAIN
				}
			}
			b.ReportMetric(float64(waits)/float64(b.N), "waits/op")
			b.ReportMetric(float64(reads)/float64(b.N), "reads/op")
		})
	}
}
