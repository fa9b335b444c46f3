//go:build unix

package main

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// chromium is the path of a Chromium, or the test is left out.
func chromium(t *testing.T) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("needs Chromium (Debian: chromium) to look at the page")
	return ""
}

// The page as a browser shows it: its pictures are drawn, each where it belongs.
func TestReportInBrowser(t *testing.T) {
	browser := chromium(t)
	dir := t.TempDir()
	var out, errs bytes.Buffer
	require.Zero(t, run([]string{"-o", dir, "-filter", ".name:Latency AND /cpu:same", file1(t, "old.txt", whole(1)), file1(t, "new.txt", whole(1.5))}, &out, &errs), errs.String())
	page := filepath.Join(dir, "report.html")
	alone := filepath.Join(t.TempDir(), "report.html") // without the pictures beside it
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(alone, text, 0o600))

	img := screenshot(t, browser, alone, "1000,3000")
	require.Equal(t, 1000, img.Bounds().Dx())
	for name, c := range map[string]color.RGBA{"bars of system time": blue, "bars of user time": orange, "what became slower": vermillion} {
		require.Greater(t, count(img, c), 200, "pixels of %s", name)
	}
}

func screenshot(t *testing.T, browser, page, size string) image.Image {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shot := filepath.Join(t.TempDir(), "shot.png")
	args := []string{"--headless", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + filepath.Join(t.TempDir(), "profile"),
		"--window-size=" + size, "--screenshot=" + shot}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // Chromium refuses to run as root with it
	}
	cmd := exec.CommandContext(ctx, browser, append(args, "file://"+page)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	data, err := os.ReadFile(shot)
	require.NoError(t, err, "%s", said)
	img, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	return img
}

func count(img image.Image, c color.RGBA) (n int) {
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			if color.RGBAModel.Convert(img.At(x, y)) == c {
				n++
			}
		}
	}
	return n
}
