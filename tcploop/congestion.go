//go:build linux

package tcploop

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxCongestion is the longest name of a congestion control (TCP_CA_NAME_MAX of
// linux/tcp.h less its NUL). The kernel would cut a longer one.
const maxCongestion = 15

func setCongestion(s int, name string) error {
	err := error(unix.ENOENT)
	if len(name) <= maxCongestion && !strings.Contains(name, "\x00") {
		err = unix.SetsockoptString(s, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	}
	switch err {
	case nil:
		return nil
	case unix.ENOENT:
		return fmt.Errorf("congestion control %q: %w: this kernel has %s", name, err, sysctl("tcp_available_congestion_control"))
	case unix.EPERM:
		return fmt.Errorf("congestion control %q: %w: allowed to everybody are %s", name, err, sysctl("tcp_allowed_congestion_control"))
	}
	return fmt.Errorf("congestion control %q: %w", name, err)
}

// Congestion returns the name of the connection's congestion control.
func (c *Channel) Congestion() (name string, err error) {
	err = c.Control("congestion", func(s, _ int) error {
		name, err = unix.GetsockoptString(s, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
	return name, err
}

// Default returns the name of the system's congestion control, which connections
// have that ask for none.
func Default() (string, error) { return readSysctl("tcp_congestion_control") }

// Available returns the names of the congestion controls that the kernel has at
// hand. A process without CAP_NET_ADMIN may use those that Allowed returns.
func Available() ([]string, error) {
	names, err := readSysctl("tcp_available_congestion_control")
	return strings.Fields(names), err
}

// Allowed returns the names of the congestion controls that every process may use.
func Allowed() ([]string, error) {
	names, err := readSysctl("tcp_allowed_congestion_control")
	return strings.Fields(names), err
}

// readSysctl reads a setting of net.ipv4, which holds for IPv6 too.
func readSysctl(name string) (string, error) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
	return strings.TrimSpace(string(text)), err
}

// sysctl is readSysctl for the text of an error.
func sysctl(name string) string {
	if text, err := readSysctl(name); err == nil {
		return text
	}
	return "unknown"
}
