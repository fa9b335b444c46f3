// Ipcplot draws the results of this module's benchmarks.
//
//	go tool ipcplot -o report new.txt
//	go tool ipcplot -o report old.txt new.txt
//	go tool ipcplot -o report -filter '/cpu:same' before=old.txt after=new.txt
//
// It writes report.html, one file with the pictures inside, and each picture as
// SVG and PNG beside it. Several files are compared, the first is what the others
// are compared with; so are the kernels in one file whose results have a "kernel:" key
// (IPCBENCH_CONFIG=1). A picture whose rows the input lacks is left out, and said.
//
// Values are medians; bars are 95 % confidence intervals, which need six samples (-count=6, better 10).
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// errUsage is a fault of the command line: exit code 2, as package flag has it.
var errUsage = errors.New("usage: ipcplot [-o dir] [-filter query] [label=]results.txt …")

func run(args []string, stdout, stderr io.Writer) int {
	err := ipcplot(args, stdout, stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "ipcplot:", err)
		return 2
	}
	fmt.Fprintln(stderr, "ipcplot:", err)
	return 1
}

func ipcplot(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("ipcplot", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	dir := flags.String("o", "report", "`folder` to write to, made if it does not exist")
	query := flags.String("filter", "*", "use only results that match `query`, as benchstat's -filter")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stderr, errUsage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return err
	} else if err != nil {
		return fmt.Errorf("%w\n%w", err, errUsage)
	}
	if flags.NArg() == 0 {
		return fmt.Errorf("no results given\n%w", errUsage)
	}
	for _, path := range flags.Args() {
		if strings.HasPrefix(path, "-") {
			return fmt.Errorf("%s: options come before files\n%w", path, errUsage)
		}
	}
	res, err := read(flags.Args(), *query)
	if err != nil {
		return err
	}
	rep, err := newReport(res)
	if err != nil {
		return err
	}
	return rep.write(*dir, stdout)
}

// write stores the pictures and the page, and says what it wrote.
func (rep *report) write(dir string, stdout io.Writer) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	files, err := rep.files()
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, f.data, 0o666); err != nil {
			return err
		}
		fmt.Fprintln(stdout, path)
	}
	for _, l := range rep.LeftOut {
		fmt.Fprintln(stdout, "left out:", l)
	}
	return nil
}
