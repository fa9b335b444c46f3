//go:build linux

package soak

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/channeltest"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
)

func TestMain(m *testing.M) {
	peer.Register("soak", playSoak)
	os.Exit(channeltest.Main(m)) // which looks for what was left open
}

// atOnce is how many rounds are played at a time.
const atOnce = 4

// hung is how long a round may take, on a slow machine too.
const hung = time.Minute

// TestSoak goes on for IPCBENCH_SOAK, a duration such as 10m, from IPCBENCH_SOAK_SEED if that is set.
func TestSoak(t *testing.T) {
	limit, err := time.ParseDuration(os.Getenv("IPCBENCH_SOAK"))
	if err != nil {
		t.Skip("IPCBENCH_SOAK is not set to a duration such as 10m")
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("IPCBENCH_SOAK_SEED"); s != "" {
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	soak(t, limit, seed)
}

// TestSoakForAMoment keeps the soak itself in working order.
func TestSoakForAMoment(t *testing.T) { soak(t, time.Second, 1) }

func soak(t *testing.T, limit time.Duration, seed uint64) {
	first, err := peer.Start(peer.Config{Role: "soak"}) // what the first child leaves running stays for good
	require.NoError(t, err)
	require.NoError(t, first.Close())
	goroutines := runtime.NumGoroutine()
	var names []string
	for name := range mechanisms {
		names = append(names, name)
	}
	slices.Sort(names)
	total := &tally{byMechanism: map[string]int{}}
	ends := time.Now().Add(limit)
	var all sync.WaitGroup
	for lane := range uint64(atOnce) {
		all.Go(func() {
			for i := uint64(0); time.Now().Before(ends) && !t.Failed(); i++ {
				r := rand.New(rand.NewPCG(seed, lane<<32+i))
				name := names[r.IntN(len(names))]
				wait := ipcbench.Waits()[r.IntN(4)]
				what := fmt.Sprintf("IPCBENCH_SOAK_SEED=%d, lane %d, round %d: %s, %v", seed, lane, i, name, wait)
				watch := time.AfterFunc(hung, func() { panic(what + ": no end within " + hung.String()) })
				if err := playRound(name, wait, r, total); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				watch.Stop()
			}
		})
	}
	all.Wait()
	t.Logf("%d rounds, %d of them cut short, %d bytes: %v", total.rounds, total.cut, total.bytes, total.byMechanism)
	for limit := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func playRound(name string, w ipcbench.Wait, r *rand.Rand, total *tally) error {
	m := mechanisms[name]
	a, b, err := m.pair(w)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	kind := r.IntN(4)
	var moved int64
	if kind == 0 {
		moved, err = withChild(name, w, a, b, r)
	} else {
		moved, err = converse(a, b, r, kind == 1)
	}
	total.add(name, moved, kind < 2)
	return err
}

type soakOrder struct {
	Mechanism string
	Wait      ipcbench.Wait
	Says      plan
	Hears     plan
}

// withChild converses with another process, which is killed in the middle.
func withChild(name string, w ipcbench.Wait, a, b ipcbench.Channel, r *rand.Rand) (moved int64, err error) {
	defer a.Close()
	says := plans(a.Contract(), r)
	says[0].Count, says[1].Count = 1<<30, 1<<30
	files, err := b.(ipcbench.Exporter).Files()
	if err = errors.Join(err, b.Close()); err != nil {
		return 0, err
	}
	child, err := peer.Start(peer.Config{Role: "soak", Files: files})
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		return 0, err
	}
	defer child.Close()
	if err := child.Send(soakOrder{name, w, says[1], says[0]}); err != nil {
		return 0, err
	}
	errs := make([]error, 2)
	moods, others := rand.New(rand.NewPCG(r.Uint64(), 0)), rand.New(rand.NewPCG(r.Uint64(), 0))
	var all sync.WaitGroup
	all.Go(func() { _, errs[0] = say(a, says[0], moods) })
	all.Go(func() { moved, errs[1] = hear(a, says[1], others) })
	time.AfterFunc(time.Duration(r.IntN(30))*time.Millisecond, func() {
		child.Kill()
		<-child.Done()
		if !a.Contract().EndOfStream {
			a.Close() // nothing else tells who reads
		}
	})
	all.Wait()
	for _, e := range errs {
		if !isEnding(e) {
			err = errors.Join(err, fmt.Errorf("after the death of the peer: %v", e))
		}
	}
	return moved, err
}

func playSoak(c *peer.Conn) error {
	var o soakOrder
	if err := c.Recv(&o); err != nil {
		return err
	}
	ch, err := mechanisms[o.Mechanism].from(c.Files(), o.Wait)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(o.Says.Seed, 2))
	go say(ch, o.Says, r)
	_, err = hear(ch, o.Hears, rand.New(rand.NewPCG(o.Says.Seed, 3)))
	return err
}
