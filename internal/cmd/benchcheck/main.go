// Benchcheck fails if results lack a row, or have a line that benchstat would
// drop in silence: a print in the middle of a result makes the row vanish, and benchstat exits 0.
//
//	go run ./internal/cmd/benchcheck rows.txt new.txt...
//
// rows.txt holds the full name of a row on each line, without the suffix that
// says GOMAXPROCS; empty lines and those that start with # are skipped.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/perf/benchfmt"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: benchcheck rows.txt results.txt...")
		os.Exit(2)
	}
	faults, err := check(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchcheck:", err)
		os.Exit(2)
	}
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, "benchcheck:", f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// check names what is missing or broken.
func check(rows string, results []string) (faults []string, err error) {
	want, err := expected(rows)
	if err != nil {
		return nil, err
	}
	have := map[string]bool{}
	parsed := 0
	files := benchfmt.Files{Paths: results}
	for files.Scan() {
		switch rec := files.Result().(type) {
		case *benchfmt.Result:
			have[withoutSuffix(rec.Name)] = true
			parsed++
		case *benchfmt.SyntaxError:
			faults = append(faults, rec.Error())
		}
	}
	if err := files.Err(); err != nil {
		return nil, err
	}
	for _, name := range want {
		if !have[name] {
			faults = append(faults, "no result for "+name)
		}
	}
	lines, err := begun(results)
	if err != nil {
		return nil, err
	}
	if lines != parsed {
		faults = append(faults, fmt.Sprintf("%d lines begin with Benchmark, %d were parsed", lines, parsed))
	}
	if len(faults) == 0 {
		fmt.Printf("benchcheck: %d results, %d expected rows all there\n", parsed, len(want))
	}
	return faults, nil
}

// withoutSuffix is the name without the -<GOMAXPROCS> that testing appends.
func withoutSuffix(name benchfmt.Name) string {
	full := name.String()
	if _, parts := name.Parts(); len(parts) > 0 {
		if last := string(parts[len(parts)-1]); strings.HasPrefix(last, "-") {
			return strings.TrimSuffix(full, last)
		}
	}
	return full
}

// expected reads the names of rows, as results have them: without the word Benchmark.
func expected(path string) (names []string, err error) {
	err = eachLine(path, func(line string) {
		if line != "" && !strings.HasPrefix(line, "#") {
			names = append(names, strings.TrimPrefix(line, "Benchmark"))
		}
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s: no rows", path)
	}
	return names, err
}

// begun counts the lines that begin as results do.
func begun(paths []string) (n int, err error) {
	for _, path := range paths {
		err := eachLine(path, func(line string) {
			if strings.HasPrefix(line, "Benchmark") {
				n++
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

func eachLine(path string, f func(string)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReader(file)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			f(strings.TrimSuffix(line, "\n"))
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
