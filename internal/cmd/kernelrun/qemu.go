//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Descriptors of qemu, in the order of ExtraFiles.
const (
	archivePath = "/dev/fd/3"
	consolePath = "/dev/fd/4"
	wirePath    = "/dev/fd/5"
)

// emulatedCPU has everything but cmpxchg16b: emulated, it lets the allocator of some kernels lose count of its free
// objects (6.12 and 7.3 panicked in kmem_cache_alloc, at the start or after seconds).
const emulatedCPU = "max,-cx16"

// qemu is the command of a machine; two serial ports are all it has besides CPUs and memory.
func (p *plan) qemu(ctx context.Context, m machine) *exec.Cmd {
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none",
		"-no-reboot", // with panic=-1 a panic is qemu's end
		"-smp", strconv.Itoa(m.cpus), "-m", strconv.Itoa(m.memory),
		"-kernel", m.kernel, "-initrd", archivePath, "-append", p.parameters(m),
		"-chardev", "file,id=console,path=" + consolePath, "-serial", "chardev:console",
		"-chardev", "file,id=wire,path=" + wirePath, "-serial", "chardev:wire",
	}
	switch {
	case p.count:
		// The clock is the count of instructions, and neither the host's time nor its randomness gets in.
		args = append(args, "-cpu", emulatedCPU, "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off",
			"-seed", "1", "-rtc", "base=2026-01-01T00:00:00,clock=vm")
	case p.accel == "kvm":
		args = append(args, "-cpu", "host", "-accel", "kvm")
	default:
		args = append(args, "-cpu", emulatedCPU, "-accel", "tcg")
	}
	return qemuCommand(ctx, args...)
}

func qemuCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, qemuName, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a killed kernelrun leaves none behind
	return cmd
}

// parameters of the kernel; those of the user come last, and the last counts.
func (p *plan) parameters(m machine) string {
	words := "console=ttyS0 earlyprintk=ttyS0 quiet panic=-1 random.trust_cpu=on"
	if p.accel == "tcg" { // emulated, the self-tests of the kernel's cryptography take seconds of its start
		words += " cryptomgr.notests initcall_blacklist=dh_init,load_system_certificate_list,jent_mod_init"
	}
	if p.count { // addresses decide on collisions, and so on paths
		words += " nokaslr norandmaps randomize_kstack_offset=off"
	}
	return strings.TrimSpace(words + " " + m.append)
}

// chooseAccel takes KVM if it works. That it can be opened does not say so, nor
// that it makes a machine: nested in some hypervisors it then fails to start a CPU. That it does makes no
// kernel start either: see runOn.
func (p *plan) chooseAccel(ctx context.Context) {
	if p.count || p.accel != "" {
		if p.accel != "kvm" {
			p.accel, p.whyTCG = "tcg", "asked for"
		}
		return
	}
	p.accel, p.triesKVM = "kvm", true
	if err := tryKVM(ctx); err != nil {
		p.accel, p.triesKVM, p.whyTCG = "tcg", false, "no KVM: "+err.Error()
	}
}

// tryKVM has qemu make a machine of the host's CPU and end before it runs.
func tryKVM(ctx context.Context) error {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	f.Close()
	noCore()
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, fmt.Errorf("no answer"))
	defer cancel()
	cmd := qemuCommand(ctx, "-nodefaults", "-no-user-config", "-display", "none",
		"-accel", "kvm", "-cpu", "host", "-S", "-monitor", "stdio")
	cmd.Stdin = strings.NewReader("quit\n")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%v: %.60s", err, lastLine(complaint.String()))
	}
	return nil
}

// noCore: qemu aborts where KVM does not work, and would leave a core in the working folder.
func noCore() { unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
