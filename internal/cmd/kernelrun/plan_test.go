//go:build linux

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	p, err := parse([]string{
		"-cpus=1", "-append=a=1", "-kernel=/boot/vmlinuz-6.1", "-append", "b", "-append=c", "-memory=512",
		"-kernel=new=./x/vmlinuz-6.1", "-cpus=4", "pipe.test", "-test.v", "-kernel=no flag of ours",
	}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []machine{
		{name: "6.1", kernel: "/boot/vmlinuz-6.1", append: "a=1 b c", cpus: 1, memory: 512},
		{name: "new", kernel: "./x/vmlinuz-6.1", append: "a=1", cpus: 4, memory: 1024},
	}, p.machines)
	require.Equal(t, 1, p.rounds)
	require.Equal(t, "pipe.test", p.binary)
	require.Equal(t, []string{"-test.v", "-kernel=no flag of ours"}, p.args)

	p, err = parse([]string{"-count-instructions", "-cpus=2", "-kernel=k", "x"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 3, p.rounds)
	require.Equal(t, 1, p.machines[0].cpus)
}

func TestParseRefuses(t *testing.T) {
	for cause, args := range map[string][]string{
		"no -kernel":                 {"x.test"},
		"no test binary":             {"-kernel=k"},
		"two machines are called k":  {"-kernel=a/k", "-kernel=b/vmlinuz-k", "x.test"},
		"no name for it":             {"-kernel==k", "x.test"},
		"a number from 1 to 255":     {"-kernel=k", "-cpus=0", "x.test"},
		"a number from 128":          {"-kernel=k", "-memory=1G", "x.test"},
		"want at least 1":            {"-kernel=k", "-rounds=-1", "x.test"},
		"want a time above 0":        {"-kernel=k", "-timeout=0", "x.test"},
		"want kvm or tcg":            {"-kernel=k", "-accel=hvf", "x.test"},
		"needs emulation":            {"-kernel=k", "-accel=kvm", "-count-instructions", "x.test"},
		"cannot tell which":          {"-kernel=k", "-rounds=1", "-count-instructions", "x.test"},
		"not defined: -instructions": {"-instructions", "x.test"},
	} {
		_, err := parse(args, io.Discard)
		require.ErrorContains(t, err, cause)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	kernel := filepath.Join(dir, "vmlinuz")
	image := append(make([]byte, 0x202), "HdrS"...)
	require.NoError(t, os.WriteFile(kernel, image, 0o600))
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))

	require.NoError(t, checkKernel(kernel))
	require.ErrorContains(t, checkKernel(plain), "not a Linux kernel image")
	require.ErrorIs(t, checkKernel(filepath.Join(dir, "none")), os.ErrNotExist)
	require.ErrorContains(t, checkBinary(plain), "plain is no program")
	require.ErrorIs(t, checkBinary(filepath.Join(dir, "none")), os.ErrNotExist)

	p := &plan{machines: []machine{{kernel: kernel}}, binary: plain}
	fake(t, "run")
	require.ErrorContains(t, p.check(), "test binary: ")
	t.Setenv("PATH", dir)
	require.ErrorIs(t, p.check(), exec.ErrNotFound)
	require.ErrorContains(t, p.check(), "qemu-system-x86_64 is not installed")
}

func TestCheckBinaryLinkage(t *testing.T) {
	static, dynamic := build(t, "exe"), build(t, "pie")
	require.NoError(t, checkBinary(static))
	require.ErrorContains(t, checkBinary(dynamic), "build it with CGO_ENABLED=0")
}

// build makes the program of testdata/guest.
func build(t *testing.T, mode string) string {
	return goBuild(t, "-buildmode="+mode, "./testdata/guest")
}

func goBuild(t *testing.T, args ...string) string {
	out := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-o", out}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=amd64")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return out
}

func TestInTurn(t *testing.T) {
	machines := []machine{{name: "a"}, {name: "b"}, {name: "c"}}
	require.Equal(t, machines, inTurn(machines, 0))
	require.Equal(t, []machine{{name: "c"}, {name: "b"}, {name: "a"}}, inTurn(machines, 1))
	require.Equal(t, machines, inTurn(machines, 2))
}
