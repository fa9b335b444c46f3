//go:build linux

package unixsock

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// maxName is what sun_path holds beside the NUL that ends a path or begins an
// abstract name (unix(7)), in bytes. A path of 108 would fit without its NUL, and
// not every program could connect to it.
const maxName = 107

// An address is either a path or an abstract name.
type address struct {
	path string // "" for an abstract name
	name string // what follows the '@'; "" is a name of the kernel's choice
}

// parse reads an address as this package's functions take it.
func parse(addr string) (address, error) {
	switch {
	case addr == "":
		return address{}, fmt.Errorf("empty address: %w", unix.EINVAL)
	case addr[0] == '@' || addr[0] == 0:
		if n := len(addr) - 1; n > maxName {
			return address{}, fmt.Errorf("%q: abstract name of %d bytes, %d fit: %w", addr, n, maxName, unix.ENAMETOOLONG)
		}
		return address{name: addr[1:]}, nil
	case strings.IndexByte(addr, 0) >= 0:
		return address{}, fmt.Errorf("%q: a NUL byte in a path: %w", addr, unix.EINVAL)
	case len(addr) > maxName:
		return address{}, fmt.Errorf("%q: path of %d bytes, %d fit: %w", addr, len(addr), maxName, unix.ENAMETOOLONG)
	}
	return address{path: addr}, nil
}

func (a address) String() string {
	if a.path != "" {
		return a.path
	}
	return "@" + a.name
}
