//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain makes the test binary qemu where it is called so: a machine that does as FAKE_QEMU says.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == qemuName {
		fakeQemu(os.Getenv("FAKE_QEMU"))
	}
	os.Exit(m.Run())
}

func fakeQemu(mode string) {
	starts, _ := os.OpenFile(os.Getenv("FAKE_STARTS"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	fmt.Fprintln(starts, os.Getpid())
	console, wirePort := os.NewFile(4, "console"), os.NewFile(5, "wire")
	w := newWire(wirePort)
	say := func(k kind, data string, status int) {
		if err := w.send(message{k, []byte(data), status}); err != nil {
			os.Exit(9)
		}
	}
	if mode == "panic once" {
		mode = "run"
		if len(startedPIDs()) == 1 {
			mode = "panic"
		}
	}
	if mode == "hang once" {
		mode = "run"
		if len(startedPIDs()) == 1 {
			mode = "hang"
		}
	}
	fmt.Fprint(console, strings.Repeat("chatter\r\n", 2000), "[ 1.0] Kernel panic - not syncing: of fright\r\n[ 1.1] the end\r\n")
	switch mode {
	case "panic":
	case "hang":
		time.Sleep(time.Hour)
	case "complain":
		fmt.Fprintln(os.Stderr, "could not load kernel")
		os.Exit(1)
	case "garbage":
		fmt.Fprintln(wirePort, "this is no message")
	case "no set-up":
		say(failed, "mount /dev: no such device", 0)
	default:
		say(ready, "9.9", 0)
		say(stdout, "out\r\n\x00", 0)
		say(stderr, "err\n", 0)
		if mode == "die" {
			break
		}
		say(exited, "", 7)
		if mode == "stay" {
			time.Sleep(time.Hour)
		}
	}
	os.Exit(0)
}

// startedPIDs are the processes that fakeQemu was.
func startedPIDs() []string {
	text, _ := os.ReadFile(os.Getenv("FAKE_STARTS"))
	return strings.Fields(string(text))
}

// fake puts the test binary in qemu's place.
func fake(t *testing.T, mode string) {
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(dir, qemuName)))
	t.Setenv("PATH", dir)
	t.Setenv("FAKE_QEMU", mode)
	t.Setenv("FAKE_STARTS", filepath.Join(dir, "starts"))
}

// gone: the process has ended and was waited for.
func gone(t *testing.T, pid string) {
	_, err := os.Stat("/proc/" + pid)
	require.ErrorIs(t, err, os.ErrNotExist)
}
