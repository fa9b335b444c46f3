//go:build linux

package unixsock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pathOf returns a path of n bytes in a new directory.
func pathOf(t *testing.T, n int) string {
	dir := filepath.Dir(newPath(t))
	return dir + "/" + strings.Repeat("x", n-len(dir)-1)
}

// abstractOf returns an abstract name of n bytes behind its '@' that no other test has.
func abstractOf(n int) string {
	name := newAbstract()
	return name + strings.Repeat("x", n+1-len(name))
}

// The longest names work for all that takes one, and the next longer are refused: nothing is cut.
func TestLengthOfNames(t *testing.T) {
	for what, make := range map[string]func(n int) string{
		"path": func(n int) string { return pathOf(t, n) }, "abstract": abstractOf,
	} {
		t.Run(what, func(t *testing.T) {
			limit(t)
			for _, k := range []Kind{Stream, Dgram, SeqPacket} {
				addr := make(107)
				a, b := meet(t, k, addr, Config{})
				write(t, a, "hello")
				require.Equal(t, "hello", read(t, b))
				if what == "path" {
					require.Equal(t, []string{filepath.Base(addr)}, files(t, filepath.Dir(addr)))
				}
			}
			for _, n := range []int{108, 109, 200} {
				addr := make(n)
				for name, err := range every(addr) {
					require.ErrorIs(t, err, unix.ENAMETOOLONG, name)
					require.ErrorContains(t, err, "107", name)
				}
				if what == "path" {
					require.Empty(t, files(t, filepath.Dir(addr)))
				}
			}
		})
	}
}

// every returns the errors of all functions that take an address.
func every(addr string) map[string]error {
	_, listen := Listen(Stream, addr, Config{})
	_, packets := Listen(SeqPacket, addr, Config{})
	_, bind := Bind(addr, Config{})
	_, dial := Dial(Stream, addr, Config{})
	_, dgram := Dial(Dgram, addr, Config{})
	return map[string]error{"listen": listen, "listen seqpacket": packets, "bind": bind, "dial": dial, "dial dgram": dgram}
}

// A path whose temporary name is too long, while the working directory or the path is relative or deep.
func TestRelativePath(t *testing.T) {
	limit(t)
	t.Chdir(filepath.Dir(newPath(t)))
	for _, path := range []string{"s", "./@s", strings.Repeat("r", 105)} {
		l := listening(t, Stream, path, Config{})
		require.Equal(t, path, l.Addr())
		dialled(t, Stream, path, Config{})
		if path == "s" {
			require.NoError(t, os.Mkdir("deeper", 0o700))
			t.Chdir("deeper")
			require.NoError(t, l.Close())
			t.Chdir("..")
			require.NoError(t, os.Remove("deeper"))
		} else {
			require.NoError(t, l.Close())
		}
		require.Empty(t, files(t, "."), "removed, from wherever Close was called")
	}
}

func TestNoAddress(t *testing.T) {
	limit(t)
	dir := filepath.Dir(newPath(t))
	for _, addr := range []string{"", dir + "/a\x00b", dir + "/a\x00"} {
		for name, err := range every(addr) {
			require.ErrorIs(t, err, unix.EINVAL, "%s %q", name, addr)
		}
	}
	require.Empty(t, files(t, dir))
	for _, addr := range []string{"@", "\x00"} {
		_, err := Dial(Stream, addr, Config{})
		require.ErrorIs(t, err, unix.EINVAL)
		require.ErrorContains(t, err, "no name")
	}
}

// The kernel chooses a name when asked for none in particular (autobind, unix(7)).
func TestChosenName(t *testing.T) {
	limit(t)
	l, m := listening(t, Stream, "@", Config{}), listening(t, SeqPacket, "\x00", Config{})
	require.NotEqual(t, l.Addr(), m.Addr())
	for _, addr := range []string{l.Addr(), m.Addr()} {
		require.Regexp(t, "^@.+", addr)
	}
	dialled(t, Stream, l.Addr(), Config{})
	dialled(t, SeqPacket, m.Addr(), Config{})
	r := bound(t, "@", Config{})
	require.Regexp(t, "^@.+", r.Addr())
	write(t, dialled(t, Dgram, r.Addr(), Config{}), "hello")
	require.Equal(t, "hello", read(t, r))
}

// An abstract name is what it is, byte for byte, and so is met by others.
func TestAbstractNames(t *testing.T) {
	limit(t)
	name := newAbstract()[1:]
	s := foreign(t, unix.SOCK_STREAM)
	defer unix.Close(s)
	require.NoError(t, unix.Bind(s, &unix.SockaddrUnix{Name: "\x00" + name}))
	require.NoError(t, unix.Listen(s, 10))
	dialled(t, Stream, "@"+name, Config{})
	dialled(t, Stream, "\x00"+name, Config{})
	_, err := Dial(Stream, "@"+name+strings.Repeat("\x00", 107-len(name)), Config{})
	require.ErrorIs(t, err, unix.ECONNREFUSED, "a padded name is another name")
	_, err = Listen(Stream, "@"+name, Config{})
	require.ErrorIs(t, err, unix.EADDRINUSE)

	for _, inside := range []string{"@" + name + "\x00a", "@" + name + "\x00b", "@" + name + "\x00"} {
		l := listening(t, Stream, inside, Config{})
		require.Equal(t, inside, l.Addr())
		dialled(t, Stream, inside, Config{})
	}
}
