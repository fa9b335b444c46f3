//go:build linux

package host

import (
	"slices"
	"strings"
)

// hypervisors are words that DMI has for machines that are none.
var hypervisors = []string{
	"KVM", "QEMU", "Bochs", "VMware", "VirtualBox", "Virtual Machine", "Xen", "HVM domU",
	"Google Compute Engine", "OpenStack", "Parallels", "BHYVE", "Firecracker", "Apple Virtualization",
}

// virtualisation names the hypervisor as far as it is known; "none" where the
// processor or the firmware shows no sign of one.
func (t tree) virtualisation() string {
	product := strings.TrimSpace(t.text("sys/class/dmi/id/sys_vendor") + " " + t.text("sys/class/dmi/id/product_name"))
	kind := t.text("sys/hypervisor/type")
	device := strings.Trim(t.text("proc/device-tree/hypervisor/compatible"), "\x00")
	// Only x86 has the flag; elsewhere the product's name has to tell.
	flags := strings.Fields(t.field("proc/cpuinfo", "flags"))
	flag := slices.Contains(flags, "hypervisor")
	switch {
	case kind != "":
		return strings.TrimSpace(kind + " " + product)
	case device != "":
		return device
	case flag && product == "":
		return "hypervisor, unknown which"
	case flag, slices.ContainsFunc(hypervisors, func(h string) bool { return strings.Contains(product, h) }):
		return product
	case product != "" || t.text("proc/cpuinfo") != "":
		return "none"
	}
	return ""
}
