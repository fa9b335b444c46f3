//go:build linux

package host

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

const cpuDir = "sys/devices/system/cpu/"

// cpuModel's key must not be "cpu": go test prints one of that name.
func (t tree) cpuModel() string {
	const info = "proc/cpuinfo"
	for _, key := range []string{"model name", "cpu model", "cpu", "uarch", "Model"} {
		if v := t.field(info, key); v != "" {
			return v
		}
	}
	// arm64 has numbers only (Documentation/arch/arm64/cpu-feature-registers.rst).
	if part := t.field(info, "CPU part"); part != "" {
		return fmt.Sprintf("implementer %s part %s", t.field(info, "CPU implementer"), part)
	}
	return ""
}

// cpus tells "2 allowed, online 0-3": what the calling thread may use, and what the machine has.
func (t tree) cpus() string {
	online := t.text(cpuDir + "online")
	var allowed unix.CPUSet
	if online == "" || unix.SchedGetaffinity(0, &allowed) != nil {
		return ""
	}
	return fmt.Sprintf("%d allowed, online %s", allowed.Count(), online)
}

// smt is "on", "off", "forceoff", "notsupported" or "notimplemented".
func (t tree) smt() string {
	if control := t.text(cpuDir + "smt/control"); control != "" {
		return control
	}
	return map[string]string{"0": "off", "1": "on"}[t.text(cpuDir+"smt/active")]
}

func (t tree) governor() string {
	return t.distinct(t.glob(cpuDir + "cpu[0-9]*/cpufreq/scaling_governor"))
}

// preemption is the model in force where debugfs tells, else what the kernel
// was built for and, if that leaves it open, what its command line chose.
func (t tree) preemption(version string) string {
	// The chosen one stands in parentheses: "none voluntary (full)".
	_, rest, found := strings.Cut(t.text("sys/kernel/debug/sched/preempt"), "(")
	if mode, _, closed := strings.Cut(rest, ")"); found && closed {
		return mode
	}
	if version == "" {
		return ""
	}
	model := "none or voluntary"
	for _, word := range strings.Fields(version) {
		if strings.HasPrefix(word, "PREEMPT") {
			model = word
		}
	}
	if mode := t.option("preempt"); mode != "" {
		model += ", preempt=" + mode
	}
	return model
}
