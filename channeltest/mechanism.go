package channeltest

import (
	"os"

	"github.com/seed-e1736cc0/ipcbench"
)

// A Mechanism is a way to make connected Channels, and what tests and benchmarks need to know of it.
type Mechanism struct {
	// Name stands behind mech= in the names of benchmarks, and is Contract().Mechanism.
	Name string
	// Pair returns the two ends of a new connection, both waiting as w says. An
	// error that is errors.ErrUnsupported says that the mechanism lacks that
	// wait: it is left out by name.
	Pair func(w ipcbench.Wait) (a, b ipcbench.Channel, err error)
	// Import makes a Channel of what Files of an ipcbench.Exporter returned in
	// another process. It takes the files over, on error too. Nil: the
	// mechanism has no peers in other processes.
	Import func(files []*os.File, w ipcbench.Wait) (ipcbench.Channel, error)
	// Variant: the default benchmarks measure it in the main places only,
	// because another mechanism, of which this is a variant, has the whole story.
	Variant bool
	// Key is appended to the names of Throughput's rows, as "cc=cubic", where
	// one mechanism is measured in several settings.
	Key string
}
