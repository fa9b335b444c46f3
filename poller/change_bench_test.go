//go:build linux

package poller

import (
	"fmt"
	"testing"
)

// BenchmarkRegister measures the Add and Remove of one descriptor in a set of
// fds others: what epoll pays so that its waits cost so little.
func BenchmarkRegister(b *testing.B) {
	benchmarkChange(b, []int{1, 900, 8000}, func(b *testing.B, s *scene, fd int) {
		for b.Loop() {
			if err := s.p.Add(fd, Readable); err != nil {
				b.Fatal(err)
			}
			if err := s.p.Remove(fd); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkModify measures a change of the interest of one descriptor among
// fds others: what a server pays each time a write finds no room.
func BenchmarkModify(b *testing.B) {
	benchmarkChange(b, []int{1, 900}, func(b *testing.B, s *scene, fd int) {
		if err := s.p.Add(fd, Readable); err != nil {
			b.Fatal(err)
		}
		for in := Writable; b.Loop(); in ^= Writable {
			if err := s.p.Modify(fd, Readable|in); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchmarkChange(b *testing.B, sizes []int, change func(b *testing.B, s *scene, fd int)) {
	for _, m := range levels {
		for _, fds := range sizes {
			name := fmt.Sprintf("mech=%s/fds=%d", m.name, fds)
			if !fits(name, m.kind, fds+1) {
				continue
			}
			b.Run(name, func(b *testing.B) {
				s := newScene(b, m, fds+1)
				last := s.readers[fds]
				if err := s.p.Remove(last); err != nil {
					b.Fatal(err)
				}
				withCosts(b)
				change(b, s, last)
			})
		}
	}
}
