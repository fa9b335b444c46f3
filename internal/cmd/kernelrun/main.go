//go:build linux

// Kernelrun runs a test binary on another Linux kernel, in a virtual machine
// that is made on the spot. It is made for go test -exec:
//
//	CGO_ENABLED=0 go test -exec='go tool kernelrun -kernel=/boot/vmlinuz-6.1' -bench=. ./...
//	go tool kernelrun -kernel=old=vmlinuz-5.10 -kernel=new=vmlinuz-6.1 -rounds=10 -o=results ./pipe.test -test.bench=.
//
// The guest is qemu's, with the kernel image and an initramfs of three things:
// kernelrun itself as the first process, the test binary, and the testdata
// folder beside which kernelrun was started. The arguments and the environment
// are passed on, standard output and error come back byte for byte, and the
// exit status is the binary's; 125 where there is none. No privileges are
// needed, and nothing is written but the files of -o.
//
// KVM is used where it works. Elsewhere the guest is emulated, which a comment
// line says: what the binary does is then to be trusted, the times are not.
//
// # Several machines
//
// Each -kernel adds a machine. The flags -append, -cpus and -memory that follow it are that
// machine's; before the first -kernel they are for all. So settings are compared as versions are:
//
//	go tool kernelrun -kernel=on=vmlinuz -kernel=off=vmlinuz -append=mitigations=off -rounds=10 -o=results ./pipe.test -test.bench=.
//	go tool benchstat on=results/on.txt off=results/off.txt
//
// A round runs the binary once on each machine, in turn; every second round goes
// backwards, so that a host that slows down favours none. With -o each machine's
// output is appended to a file of its own, after each run and in one piece, since
// go test calls kernelrun once for each package: remove old files first.
//
// # Counting instead of timing
//
// With -count-instructions the guest has one emulated CPU whose clock advances by a
// nanosecond with each instruction (qemu's -icount shift=0,sleep=off). What the benchmark takes for
// nanoseconds are then instructions, of the kernel and of the program, and a noisy
// host cannot spoil them. They are the length of the path, not its time: caches,
// mispredicted branches and the cost of a mode switch are not in them. Only the rows
// named cpu=same and those of SelfLoop are reported, as guest-instructions/op, without any unit of
// time. Each machine is booted -rounds times, three by default; a row whose
// samples are further apart than 0.5 % has the unit varying-guest-instructions/op
// instead, and a comment line with its range.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// exitTrouble is the exit status when there is none of the test binary.
const exitTrouble = 125

// The kernel ends qemu when the thread that started it ends (PR_SET_PDEATHSIG): main's never does before the process.
func init() { runtime.LockOSThread() }

func main() {
	if isGuest() {
		beGuest()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	status, err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, errHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernelrun:", err)
		os.Exit(exitTrouble)
	}
	os.Exit(status)
}

func run(ctx context.Context, args []string) (status int, err error) {
	plan, err := parse(args, os.Stderr)
	if err != nil {
		return 0, err
	}
	if err := plan.check(); err != nil {
		return 0, err
	}
	archive, err := initramfs(plan.binary, plan.args)
	if err != nil {
		return 0, fmt.Errorf("initramfs: %w", err)
	}
	defer archive.Close()
	plan.chooseAccel(ctx)
	r := &rounds{plan: plan, archive: archive, stdout: os.Stdout, stderr: os.Stderr}
	return r.run(ctx)
}
