//go:build linux

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

// A Fact is one thing known about the machine.
type Fact struct {
	Key   string // a configuration key of the benchmark format: lower case, no space, no colon
	Value string // one line, trimmed, never empty, at most 120 characters
}

// maxValue is the length of a Value in characters.
const maxValue = 120

// Facts returns what can be found out; what cannot be read is left out.
func Facts() []Fact {
	return facts(tree("/"))
}

// Lines returns the facts as comment lines, "# key: value", which every reader
// of the benchmark format passes over; or, with config, as "key: value" lines,
// which benchstat can group by. As it makes a table for each combination of
// values that it meets, one fact is compared by naming the tables too:
//
//	go tool benchstat -table pkg -col kernel merged.txt
//
// The load and the kernel's build are comments even then: they never repeat.
func Lines(config bool) []string {
	return lines(Facts(), config)
}

func lines(facts []Fact, config bool) []string {
	var out []string
	for _, f := range facts {
		line := f.Key + ": " + f.Value
		if !config || f.Key == "load" || f.Key == "kernel-version" {
			line = "# " + line
		}
		out = append(out, line)
	}
	return out
}

func facts(t tree) []Fact {
	release, version := uname()
	var out []Fact
	for _, f := range []Fact{
		{"kernel", release},
		{"kernel-version", version},
		{"cpu-model", t.cpuModel()},
		{"cpus", t.cpus()},
		{"smt", t.smt()},
		{"governor", t.governor()},
		{"memory", t.memory()},
		{"virtualisation", t.virtualisation()},
		{"mitigations", t.mitigated()},
		{"vulnerable", t.vulnerable()},
		{"spectre-v2", t.spectreV2()},
		{"mitigations-option", t.option("mitigations")},
		{"preemption", t.preemption(version)},
		{"clock-source", t.text("sys/devices/system/clocksource/clocksource0/current_clocksource")},
		{"tcp-congestion", t.text("proc/sys/net/ipv4/tcp_congestion_control")},
		{"tcp-congestion-available", t.text("proc/sys/net/ipv4/tcp_available_congestion_control")},
		{"pipe-max-size", t.text("proc/sys/fs/pipe-max-size")},
		{"wmem-default", t.text("proc/sys/net/core/wmem_default")},
		{"rmem-default", t.text("proc/sys/net/core/rmem_default")},
		{"unix-max-dgram-qlen", t.text("proc/sys/net/unix/max_dgram_qlen")},
		{"load", t.load()},
	} {
		if f.Value = tidy(f.Value); f.Value != "" {
			out = append(out, f)
		}
	}
	return out
}

func uname() (release, version string) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "", ""
	}
	return unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:])
}

// tidy makes one line of value, within maxValue.
func tidy(value string) string {
	value = strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) && r != unicode.ReplacementChar {
			return r
		}
		return ' '
	}, value)
	value = strings.Join(strings.Fields(value), " ")
	if r := []rune(value); len(r) > maxValue {
		value = strings.TrimSpace(string(r[:maxValue-1])) + "…"
	}
	return value
}

// A tree is the root of a file system: "/", but for tests.
type tree string

// text returns the trimmed content of a file, "" if it cannot be read.
func (t tree) text(name string) string {
	data, _ := os.ReadFile(filepath.Join(string(t), name))
	return strings.TrimSpace(string(data))
}

func (t tree) glob(pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(string(t), pattern))
	for i := range found {
		found[i], _ = filepath.Rel(string(t), found[i])
	}
	return found
}

// field returns the value of the first "key : value" line of a file of /proc.
func (t tree) field(name, key string) string {
	for line := range strings.Lines(t.text(name)) {
		if k, v, found := strings.Cut(line, ":"); found && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// option returns the value of an option of the kernel's command line; the last one counts.
func (t tree) option(name string) (value string) {
	for _, word := range strings.Fields(t.text("proc/cmdline")) {
		if word == "--" { // the rest is init's
			break
		}
		if v, found := strings.CutPrefix(word, name+"="); found {
			value = v
		}
	}
	return value
}

// load leaves out what loadavg says of processes.
func (t tree) load() string {
	words := strings.Fields(t.text("proc/loadavg"))
	return strings.Join(words[:min(3, len(words))], " ")
}

// memory is rounded, as each kernel keeps a little of its own.
func (t tree) memory() string {
	kib, err := strconv.ParseFloat(strings.TrimSuffix(t.field("proc/meminfo", "MemTotal"), " kB"), 64)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%.1f GiB", kib/(1<<20))
}

// distinct returns the different contents of files, in order, with a space between.
func (t tree) distinct(files []string) string {
	var seen []string
	for _, f := range files {
		if text := t.text(f); text != "" && !slices.Contains(seen, text) {
			seen = append(seen, text)
		}
	}
	slices.Sort(seen)
	return strings.Join(seen, " ")
}
