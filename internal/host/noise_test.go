//go:build linux

package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoise(t *testing.T) {
	root := tree(t.TempDir())
	set := func(stat, load string) {
		require.NoError(t, os.MkdirAll(filepath.Join(string(root), "proc"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(string(root), "proc/stat"), []byte(stat+"\ncpu0 1 1 1\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(string(root), "proc/loadavg"), []byte(load+" 0.10 0.20 1/100 12345\n"), 0o600))
	}
	set("cpu  100 0 100 800 0 0 0 0 50 50", "0.50")
	w := startWatch(root, 2)
	set("cpu  600 0 100 1295 0 0 0 5 99 99", "1.75") // 1000 ticks, 5 of them stolen
	require.Equal(t, []string{"# noise: stolen by the hypervisor 0.50 %, load 1.75, 2 CPUs"}, w.Lines())

	set("cpu  600 0 100 1270 0 0 0 30 99 99", "2.25")
	require.Equal(t, []string{
		"# noise: stolen by the hypervisor 3.00 %, load 2.25, 2 CPUs",
		"# noise: more than 1 % of the time was stolen: repeat this run before you believe it",
		"# noise: the load was above the number of CPUs: was something else running?",
	}, w.Lines())

	// The load at the start counts too; what cannot be read is no noise.
	busy := startWatch(root, 2)
	set("cpu", "0.00")
	require.Equal(t, []string{
		"# noise: stolen by the hypervisor 0.00 %, load 2.25, 2 CPUs",
		"# noise: the load was above the number of CPUs: was something else running?",
	}, busy.Lines())
	require.Positive(t, allowed())
}
