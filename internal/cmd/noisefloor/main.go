// Noisefloor measures the same binaries twice and says what differs all the
// same: no difference that is smaller than that means anything on this machine.
//
//	go tool noisefloor [-n 10] [-bench regexp] [-benchtime 200ms] [-o file] packages
//
// The two halves alternate, run by run, so that both meet the same weather. It
// prints each row of ns/op whose halves differ by the test that benchstat uses (Mann-Whitney,
// p < 0.05), the share of rows that do not, and the largest difference of medians among
// those. One row in twenty may differ by chance.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("noisefloor: ")
	var o options
	flag.IntVar(&o.n, "n", 10, "runs of each half; with fewer than 6 no difference can be shown")
	flag.StringVar(&o.bench, "bench", "^(BenchmarkLatency|BenchmarkThroughput)$/././^cpu=same$", "benchmarks to run")
	flag.StringVar(&o.benchtime, "benchtime", "200ms", "time for each row")
	out := flag.String("o", "", "write the results to a file too, with half=a and half=b")
	flag.Parse()
	if flag.NArg() == 0 || o.n < 1 {
		flag.Usage()
		os.Exit(2)
	}
	o.packages = flag.Args()
	if err := run(o, *out, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	n                int
	bench, benchtime string
	packages         []string
}

func run(o options, out string, w io.Writer) error {
	dir, err := os.MkdirTemp("", "noisefloor")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binaries, err := o.build(dir)
	if err != nil {
		return err
	}
	var halves [2]bytes.Buffer
	for i := range o.n {
		for _, h := range []int{i % 2, 1 - i%2} {
			for _, b := range binaries {
				if err := o.measure(b, &halves[h]); err != nil {
					return err
				}
			}
		}
	}
	if out != "" {
		text := append(append([]byte("half: a\n"), halves[0].Bytes()...), append([]byte("half: b\n"), halves[1].Bytes()...)...)
		if err := os.WriteFile(out, text, 0o666); err != nil {
			return err
		}
	}
	rows, err := compare(halves[0].Bytes(), halves[1].Bytes())
	if err != nil {
		return err
	}
	report(w, rows)
	return nil
}

// A binary is a compiled test, and the directory that go test would run it in.
type binary struct{ file, dir string }

func (o options) build(dir string) (all []binary, err error) {
	list, err := output(exec.Command("go", append([]string{"list", "-f", "{{.Dir}}"}, o.packages...)...))
	if err != nil {
		return nil, err
	}
	for i, pkg := range strings.Fields(list) {
		b := binary{filepath.Join(dir, fmt.Sprintf("%d.test", i)), pkg}
		build := exec.Command("go", "test", "-c", "-o", b.file, ".")
		build.Dir = pkg
		if _, err := output(build); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

func (o options) measure(b binary, w io.Writer) error {
	cmd := exec.Command(b.file, "-test.run=^$", "-test.bench="+o.bench, "-test.benchtime="+o.benchtime)
	cmd.Dir = b.dir
	text, err := output(cmd)
	io.WriteString(w, text)
	return err
}

// output runs a command; where it fails, the error has its last lines.
func output(cmd *exec.Cmd) (string, error) {
	text, err := cmd.CombinedOutput()
	if err != nil {
		tail := text[max(0, len(text)-2000):]
		return "", errors.Join(fmt.Errorf("%s: %w", cmd, err), errors.New(string(tail)))
	}
	return string(text), nil
}
