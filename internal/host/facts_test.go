//go:build linux

package host

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// plant makes a file system of names and contents.
func plant(t *testing.T, files map[string]string) tree {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return tree(root)
}

func values(facts []Fact) map[string]string {
	m := make(map[string]string)
	for _, f := range facts {
		m[f.Key] = f.Value
	}
	return m
}

var key = regexp.MustCompile(`^[a-z][^\s:A-Z]*$`)

func requireWellFormed(t *testing.T, facts []Fact) {
	t.Helper()
	seen := make(map[string]bool)
	for _, f := range facts {
		require.Regexp(t, key, f.Key)
		require.False(t, seen[f.Key], "twice: %s", f.Key)
		seen[f.Key] = true
		require.NotEmpty(t, f.Value, f.Key)
		require.Equal(t, strings.Join(strings.Fields(f.Value), " "), f.Value)
		require.LessOrEqual(t, utf8.RuneCountInString(f.Value), maxValue)
		require.NotContains(t, []string{"cpu", "goos", "goarch", "pkg"}, f.Key, "go test prints that")
	}
}

func TestHere(t *testing.T) {
	facts := Facts()
	requireWellFormed(t, facts)
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(release)), values(facts)["kernel"])
	for _, key := range []string{"kernel-version", "preemption", "pipe-max-size", "load", "memory"} {
		require.Contains(t, values(facts), key)
	}
}

func TestFull(t *testing.T) {
	const dir = "sys/devices/system/cpu/"
	facts := facts(plant(t, map[string]string{
		"proc/cpuinfo":                                       "processor\t: 0\nmodel name\t: AMD  EPYC\t9\nflags\t\t: fpu hypervisor lm\n",
		"proc/meminfo":                                       "MemTotal:       24683584 kB\nMemFree: 1 kB\n",
		"proc/loadavg":                                       "0.52 0.58 0.59 2/77 4711\n",
		"proc/cmdline":                                       "quiet mitigations=off mitigations=auto,nosmt -- mitigations=init\n",
		"proc/sys/fs/pipe-max-size":                          "1048576\n",
		"proc/sys/net/core/wmem_default":                     "212992\n",
		"proc/sys/net/core/rmem_default":                     "212993\n",
		"proc/sys/net/unix/max_dgram_qlen":                   "10\n",
		"proc/sys/net/ipv4/tcp_congestion_control":           "bbr\n",
		"proc/sys/net/ipv4/tcp_available_congestion_control": "reno cubic bbr\n",
		"sys/class/dmi/id/sys_vendor":                        "QEMU\n",
		"sys/class/dmi/id/product_name":                      "Standard PC\n",
		"sys/kernel/debug/sched/preempt":                     "none voluntary (full) lazy\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
		dir + "online":                          "0-1\n",
		dir + "smt/control":                     "off\n",
		dir + "cpu0/cpufreq/scaling_governor":   "schedutil\n",
		dir + "cpu1/cpufreq/scaling_governor":   "performance\n",
		dir + "cpu2/cpufreq/scaling_governor":   "schedutil\n",
		dir + "vulnerabilities/mds":             "Vulnerable: Clear CPU buffers attempted, no microcode\n",
		dir + "vulnerabilities/meltdown":        "Mitigation: PTI\n",
		dir + "vulnerabilities/itlb_multihit":   "KVM: Mitigation: VMX disabled\n",
		dir + "vulnerabilities/l1tf":            "Not affected\n",
		dir + "vulnerabilities/gather_data":     "Unknown: Dependent on hypervisor status\n",
		dir + "vulnerabilities/spectre_v2":      "Mitigation: Retpolines; STIBP: disabled\n",
		dir + "vulnerabilities/tsx_async_abort": "\n",
	}))
	requireWellFormed(t, facts)
	got := values(facts)
	require.Regexp(t, `^\d+ allowed, online 0-1$`, got["cpus"])
	delete(got, "cpus")
	delete(got, "kernel")
	delete(got, "kernel-version")
	require.Equal(t, map[string]string{
		"cpu-model": "AMD EPYC 9", "memory": "23.5 GiB", "load": "0.52 0.58 0.59",
		"smt": "off", "governor": "performance schedutil", "virtualisation": "QEMU Standard PC",
		"mitigations": "itlb_multihit meltdown spectre_v2", "vulnerable": "gather_data mds",
		"spectre-v2": "Retpolines; STIBP: disabled", "mitigations-option": "auto,nosmt",
		"preemption": "full", "clock-source": "tsc", "tcp-congestion": "bbr", "tcp-congestion-available": "reno cubic bbr",
		"pipe-max-size": "1048576", "wmem-default": "212992", "rmem-default": "212993", "unix-max-dgram-qlen": "10",
	}, got)
}

func TestEmptyTree(t *testing.T) {
	var keys []string
	for _, f := range facts(plant(t, nil)) {
		keys = append(keys, f.Key)
	}
	require.Equal(t, []string{"kernel", "kernel-version", "preemption"}, keys)
}

// A path that is a directory, or that holds nothing, is a fact left out.
func TestUnreadable(t *testing.T) {
	got := values(facts(plant(t, map[string]string{
		"proc/sys/fs/pipe-max-size/x":    "1",
		"proc/sys/net/core/wmem_default": " \n",
		"proc/loadavg":                   "",
		"proc/meminfo":                   "MemTotal: many\n",
	})))
	for _, key := range []string{"pipe-max-size", "wmem-default", "load", "memory"} {
		require.NotContains(t, got, key)
	}
}

func TestMitigationsNone(t *testing.T) {
	root := plant(t, map[string]string{"sys/devices/system/cpu/vulnerabilities/mds": "Not affected\n"})
	require.Equal(t, "none", root.mitigated())
	require.Equal(t, "none", root.vulnerable())
}

func TestPreemption(t *testing.T) {
	none := plant(t, nil)
	require.Equal(t, "PREEMPT_DYNAMIC", none.preemption("#1 SMP PREEMPT_DYNAMIC @0"))
	require.Equal(t, "PREEMPT_RT", none.preemption("#1 SMP PREEMPT_RT Debian"))
	require.Equal(t, "none or voluntary", none.preemption("#1 SMP Debian"))
	require.Empty(t, none.preemption(""))
	chosen := plant(t, map[string]string{"proc/cmdline": "preempt=full"})
	require.Equal(t, "PREEMPT_DYNAMIC, preempt=full", chosen.preemption("#1 SMP PREEMPT_DYNAMIC @0"))
}

func TestVirtualisation(t *testing.T) {
	const vendor, product = "sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name"
	for _, c := range []struct {
		want  string
		files map[string]string
	}{
		{"", nil},
		{"none", map[string]string{"proc/cpuinfo": "flags : fpu\n"}},
		{"none", map[string]string{"proc/cpuinfo": "flags : fpu\n", vendor: "LENOVO\n", product: "ThinkPad\n"}},
		{"hypervisor, unknown which", map[string]string{"proc/cpuinfo": "flags : fpu hypervisor\n"}},
		{"Amazon EC2 m5.large", map[string]string{"proc/cpuinfo": "flags : hypervisor\n", vendor: "Amazon EC2\n", product: "m5.large\n"}},
		{"none", map[string]string{"proc/cpuinfo": "Features : fp\n", vendor: "Amazon EC2\n", product: "c7g.metal\n"}},
		{"QEMU KVM Virtual Machine", map[string]string{"proc/cpuinfo": "Features : fp\n", vendor: "QEMU\n", product: "KVM Virtual Machine\n"}},
		{"linux,kvm", map[string]string{"proc/device-tree/hypervisor/compatible": "linux,kvm\x00"}},
		{"xen", map[string]string{"sys/hypervisor/type": "xen\n"}},
	} {
		require.Equal(t, c.want, plant(t, c.files).virtualisation(), "%v", c.files)
	}
}

func TestModelOfArm(t *testing.T) {
	root := plant(t, map[string]string{"proc/cpuinfo": "processor : 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"})
	require.Equal(t, "implementer 0x41 part 0xd0c", root.cpuModel())
}

func TestSMTOfOldKernels(t *testing.T) {
	require.Equal(t, "on", plant(t, map[string]string{"sys/devices/system/cpu/smt/active": "1\n"}).smt())
}

func TestTidy(t *testing.T) {
	require.Equal(t, "a b c", tidy("\ta\nb\x00\x1b c\xff\n"))
	require.Empty(t, tidy(" \n"))
	long := tidy(strings.Repeat("ü", 200))
	require.Equal(t, strings.Repeat("ü", maxValue-1)+"…", long)
	require.Equal(t, strings.Repeat("x", maxValue), tidy(strings.Repeat("x", maxValue)))
}

func TestLines(t *testing.T) {
	facts := []Fact{{"kernel", "6.18"}, {"kernel-version", "#1"}, {"load", "1.00"}}
	require.Equal(t, []string{"# kernel: 6.18", "# kernel-version: #1", "# load: 1.00"}, lines(facts, false))
	require.Equal(t, []string{"kernel: 6.18", "# kernel-version: #1", "# load: 1.00"}, lines(facts, true))
	for _, line := range Lines(false) {
		require.Regexp(t, `^# [a-z][^\s:A-Z]*: \S`, line)
	}
}

func TestUname(t *testing.T) {
	var u unix.Utsname
	require.NoError(t, unix.Uname(&u))
	release, version := uname()
	require.NotEmpty(t, release)
	require.NotEmpty(t, version)
	require.NotContains(t, release+version, "\x00")
}
