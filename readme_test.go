//go:build linux

package ipcbench

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the README names has to exist: flags, paths, benchmarks, mechanisms, variables.

func readme(t *testing.T) string {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// commands are the lines of the README's sh blocks, without their comments.
func commands(t *testing.T) (lines []string) {
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readme(t), -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			if line != "" {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	require.NotEmpty(t, lines)
	return lines
}

// sources is the text of all Go files.
func sources(t *testing.T) string {
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || path == "readme_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	}))
	return all.String()
}

func output(t *testing.T, args ...string) string {
	out, _ := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	return string(out)
}

func TestReadmeCommands(t *testing.T) {
	known := map[string]string{
		"go test":            output(t, "go", "help", "testflag") + output(t, "go", "help", "test") + output(t, "go", "help", "build"),
		"go tool benchstat":  output(t, "go", "tool", "benchstat", "-h"),
		"go tool ipcplot":    output(t, "go", "tool", "ipcplot", "-h"),
		"go tool noisefloor": output(t, "go", "tool", "noisefloor", "-h"),
	}
	made := map[string]bool{} // files that earlier commands wrote
	for _, line := range commands(t) {
		line, target, _ := strings.Cut(line, ">")
		made[strings.TrimSpace(strings.TrimPrefix(target, ">"))] = true
		tool := regexp.MustCompile(`go (tool )?\w+`).FindString(line)
		help, ok := known[tool]
		require.True(t, ok, "%s: no such tool here", line)
		for _, word := range strings.Fields(line) {
			switch {
			case strings.HasPrefix(word, "-"):
				flag, _, _ := strings.Cut(word, "=")
				require.Regexp(t, `(?m)^\s+`+regexp.QuoteMeta(flag)+`\b`, help, "flag of %s", line)
			case strings.HasPrefix(word, "./") && word != "./...", strings.Contains(word, "testdata/"):
				_, path, found := strings.Cut(word, "=")
				if !found {
					path = word
				}
				_, err := os.Stat(path)
				require.NoError(t, err, "path of %s", line)
			case strings.HasSuffix(word, ".txt"):
				_, file, found := strings.Cut(word, "=")
				if !found {
					file = word
				}
				require.True(t, made[file], "%s: nothing has written %s", line, file)
			}
		}
	}
}

func TestReadmeNames(t *testing.T) {
	text, code := readme(t), sources(t)
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(link[1], "http") {
			_, err := os.Stat(link[1])
			require.NoError(t, err)
		}
	}
	for _, name := range regexp.MustCompile(`IPCBENCH_\w+`).FindAllString(text, -1) {
		require.Contains(t, code, `"`+name+`"`)
	}
	for _, bench := range regexp.MustCompile(`-bench='?(\w+)`).FindAllStringSubmatch(text, -1) {
		require.Contains(t, code, "func Benchmark"+bench[1]+"(")
	}
	for _, mech := range regexp.MustCompile(`mech=([a-z][\w-]*)`).FindAllStringSubmatch(text, -1) {
		require.Contains(t, code, `"`+mech[1]+`"`)
	}
	for _, key := range regexp.MustCompile(`[/ ](size|cpu|peer|wait|cc|batch|load)=`).FindAllStringSubmatch(text, -1) {
		require.Contains(t, code, `"`+key[1]+"=")
	}
	for _, key := range regexp.MustCompile(`[ ,'(]/([a-z]+)\b`).FindAllStringSubmatch(strings.Join(commands(t), "\n"), -1) {
		if key[1] != "gomaxprocs" { // benchstat's own
			require.Contains(t, code, key[1]+"=")
		}
	}
}
