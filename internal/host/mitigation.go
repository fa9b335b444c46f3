//go:build linux

package host

import (
	"path/filepath"
	"slices"
	"strings"
)

const vulnerabilityDir = cpuDir + "vulnerabilities/"

// vulnerabilities returns the names of the entries whose state is as wanted, and how many entries there are
// (Documentation/ABI/testing/sysfs-devices-system-cpu).
func (t tree) vulnerabilities(wanted func(state string) bool) (names []string, all int) {
	for _, file := range t.glob(vulnerabilityDir + "*") {
		state := strings.TrimPrefix(t.text(file), "KVM: ") // itlb_multihit
		if state == "" {
			continue
		}
		all++
		if wanted(state) {
			names = append(names, filepath.Base(file))
		}
	}
	slices.Sort(names)
	return names, all
}

// mitigated names what the kernel works against, at a price in each system call or switch.
func (t tree) mitigated() string {
	return t.named(func(state string) bool { return strings.HasPrefix(state, "Mitigation:") })
}

// vulnerable names what nothing is done about, or not known to be.
func (t tree) vulnerable() string {
	return t.named(func(state string) bool {
		return !strings.HasPrefix(state, "Mitigation:") && !strings.HasPrefix(state, "Not affected")
	})
}

func (t tree) named(wanted func(string) bool) string {
	names, all := t.vulnerabilities(wanted)
	if len(names) == 0 && all > 0 {
		return "none"
	}
	return strings.Join(names, " ")
}

// spectreV2 is told in full, for it is the dearest to system calls: "Retpolines; IBPB: conditional; …".
func (t tree) spectreV2() string {
	return strings.TrimPrefix(t.text(vulnerabilityDir+"spectre_v2"), "Mitigation: ")
}
