//go:build linux

package main

import (
	"bytes"
	"encoding/gob"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/stretchr/testify/require"
)

func TestInitramfs(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("TMPDIR", "/nowhere")
	t.Setenv("MARK", "a=b c")
	require.NoError(t, os.MkdirAll("testdata/deep", 0o755))
	require.NoError(t, os.WriteFile("testdata/deep/odd", []byte("12345"), 0o644))
	require.NoError(t, os.Symlink("deep/odd", "testdata/link"))
	require.NoError(t, os.WriteFile("x.test", []byte("program"), 0o755))

	f, err := initramfs(filepath.Join(dir, "x.test"), []string{"-test.v", ""})
	require.NoError(t, err)
	defer f.Close()
	files := contents(t, f)
	require.Equal(t, "program", files["test/x.test"])
	require.Equal(t, "12345", files["test/testdata/deep/odd"])
	require.Equal(t, "12345", files["test/testdata/link"])
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.Equal(t, len(self), len(files["init"]))

	var o order
	require.NoError(t, gob.NewDecoder(bytes.NewReader([]byte(files["order"]))).Decode(&o))
	require.Equal(t, "/test/x.test", o.Path)
	require.Equal(t, []string{"-test.v", ""}, o.Args)
	require.Contains(t, o.Env, "MARK=a=b c")
	require.NotContains(t, o.Env, "TMPDIR=/nowhere")

	require.NoError(t, os.Remove("testdata/deep/odd"))
	_, err = initramfs(filepath.Join(dir, "x.test"), nil)
	require.ErrorIs(t, err, os.ErrNotExist) // the link is broken now
}

// contents also checks that every file comes after its folder: the kernel makes none by itself.
func contents(t *testing.T, f *os.File) map[string]string {
	_, err := f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	files, dirs := map[string]string{}, map[string]bool{".": true}
	for r := cpio.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		require.True(t, dirs[filepath.Dir(h.Name)], h.Name)
		if h.Mode.IsDir() {
			dirs[h.Name] = true
			continue
		}
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		files[h.Name] = string(data)
	}
}
