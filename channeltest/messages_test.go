//go:build linux

package channeltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

func TestMessagesArrive(t *testing.T) {
	for _, mech := range []Mechanism{pipes, dgrams} {
		for _, batch := range []int{1, maxBatch} {
			for _, size := range []int{8, 512} {
				r := row{measure: messaging, mech: mech, size: size, seat: here, way: processEpoll, batch: batch}
				t.Run(r.name(), func(t *testing.T) {
					s := open(t, r)
					inTime(t, 20*time.Second, func() {
						for _, n := range []int{1, 63, 64, 65, 5000} {
							reports, err := s.run(n, 10*time.Second)
							require.NoError(t, err)
							require.Equal(t, int64(n), reports[1].Messages)
							require.Equal(t, int64(n*size), reports[1].Received)
						}
					})
					require.NoError(t, s.close())
				})
			}
		}
	}
}

// A courier finds whatever is wrong with what arrives.
func TestCourierChecks(t *testing.T) {
	const n = 10
	for name, spoil := range map[string]func(sender *courier) error{
		"lost":      func(c *courier) error { c.next++; return c.produce(n - 1) },
		"doubled":   func(c *courier) error { c.next--; return c.produce(n - 1) },
		"too short": func(c *courier) error { return c.write(c.out[:7]) },
		"another size": func(c *courier) error {
			c.number(1)
			return c.write(append(c.out[:c.stride:c.stride], 0))
		},
	} {
		for _, kind := range []unixsock.Kind{unixsock.Stream, unixsock.SeqPacket} {
			t.Run(name+"/"+kind.String(), func(t *testing.T) {
				a, b, err := unixsock.Pair(kind, unixsock.Config{Wait: ipcbench.Spin})
				require.NoError(t, err)
				defer a.Close()
				defer b.Close()
				sender, receiver := openCourier(t, a), openCourier(t, b)
				require.NoError(t, sender.produce(n))
				require.NoError(t, receiver.consume(n))
				require.NoError(t, spoil(sender))
				require.NoError(t, a.CloseWrite()) // what is missing is not waited for
				require.Error(t, receiver.consume(n))
			})
		}
	}
}

func openCourier(t *testing.T, ch ipcbench.Channel) *courier {
	c, err := newCourier(ch, 16, 1)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, unix.Close(c.readable.fd))
		require.NoError(t, unix.Close(c.writable.fd))
	})
	return c
}

func TestBoundariesCountsReads(t *testing.T) {
	for _, c := range []struct {
		mech  Mechanism
		reads int64
	}{{pipes, 1}, {dgrams, 3}} {
		s := open(t, row{measure: boundaries, mech: c.mech, size: threeWrites, seat: here, way: threadBlock, batch: 1})
		inTime(t, 10*time.Second, func() {
			reports, err := s.run(100, 5*time.Second)
			require.NoError(t, err)
			require.Equal(t, 100*c.reads, reports[0].Messages)
		})
		require.NoError(t, s.close())
	}
}
