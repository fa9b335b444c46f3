//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kernelImage is the kernel for tests with a real guest: KERNELRUN_KERNEL, or one of the machine's own.
func kernelImage(t *testing.T) string {
	if testing.Short() {
		t.Skip("boots take long: not with -short")
	}
	if _, err := exec.LookPath(qemuName); err != nil {
		t.Skip("no qemu:", err)
	}
	images, _ := filepath.Glob("/boot/vmlinuz*")
	for _, image := range append([]string{os.Getenv("KERNELRUN_KERNEL")}, images...) {
		if image != "" && checkKernel(image) == nil {
			return image
		}
	}
	t.Skip("no kernel that can be read: neither KERNELRUN_KERNEL nor /boot/vmlinuz*")
	return ""
}

// kernelrun runs the program itself, which has to be /init.
func kernelrun(t *testing.T, dir string, args ...string) (out, errOut string, status int) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, goBuild(t, "."), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MARK=a b=c", "TMPDIR=/nowhere")
	var outBuffer, errBuffer bytes.Buffer
	cmd.Stdout, cmd.Stderr = &outBuffer, &errBuffer
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return outBuffer.String(), errBuffer.String(), cmd.ProcessState.ExitCode()
}

func TestGuest(t *testing.T) {
	kernel := kernelImage(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "testdata"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "testdata", "word"), []byte("hello"), 0o644))

	out, errOut, status := kernelrun(t, dir, "-kernel=k="+kernel, build(t, "exe"), "-x", "", "y z")
	require.Equal(t, 42, status, errOut)
	require.Equal(t, "to stderr\n", errOut)
	out, isWhole := strings.CutSuffix(out, "\n\r\n\x00\xff\ttail")
	require.True(t, isWhole, "%q", out)
	lines := strings.Split(out, "\n")
	var found map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &found))
	require.Contains(t, lines[len(lines)-2], "# kernelrun: k: Linux "+found["release"].(string))
	delete(found, "release")
	require.Equal(t, map[string]any{
		"args": []any{"-x", "", "y z"}, "mark": "a b=c", "hostname": "kernelrun", "dir": "/test", "testdata": "hello<nil>",
		"127.0.0.1:0": "<nil>", "[::1]:0": "<nil>", "localhost:0": "<nil>", "/tmp": "<nil>", "/dev/shm": "<nil>",
		"files": float64(512 << 10), "proc": "<nil>", "orphan": "<nil>",
	}, found)
}

func TestKernelThatPanics(t *testing.T) {
	kernel := kernelImage(t)
	_, errOut, status := kernelrun(t, t.TempDir(), "-kernel=k="+kernel, "-append=rdinit=/none init=/none", build(t, "exe"))
	require.Equal(t, exitTrouble, status)
	require.Contains(t, errOut, "kernelrun: k: 5 boots: the kernel ended before the test binary was started")
	require.Contains(t, errOut, "Kernel panic - not syncing")
}

func TestGuestThatHangs(t *testing.T) {
	kernel := kernelImage(t)
	_, errOut, status := kernelrun(t, t.TempDir(), "-kernel=k="+kernel, "-timeout=20s", build(t, "exe"), "orphan")
	require.Equal(t, exitTrouble, status)
	require.Contains(t, errOut, "kernelrun: k: no end after 20s\nconsole")
}
