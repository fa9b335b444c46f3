//go:build linux

package workload

import (
	"os"
	"testing"

	"github.com/seed-e1736cc0/ipcbench/channeltest"
)

// The parties are processes of this test binary: each workload's file names its roles by peer.Register in an init.
func TestMain(m *testing.M) { os.Exit(channeltest.Main(m)) }
