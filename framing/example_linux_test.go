package framing_test

import (
	"encoding/binary"
	"fmt"

	"github.com/seed-e1736cc0/ipcbench/framing"
	"github.com/seed-e1736cc0/ipcbench/pipe"
)

// A pipe that keeps boundaries.
func ExampleNew() {
	a, b, err := pipe.Pair(pipe.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	f := framing.LengthPrefix(4, binary.BigEndian, 1<<20)
	sender, receiver := framing.New(a, f), framing.New(b, f)
	defer receiver.Close()

	fmt.Fprint(sender, "AAA")
	fmt.Fprint(sender, "BB")
	fmt.Println(sender.Close())

	fmt.Println(receiver.Contract().Mechanism, receiver.Contract().Boundaries)
	for buf := make([]byte, 100); ; {
		n, err := receiver.Read(buf)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", buf[:n])
	}
	// Output:
	// <nil>
	// pipe+u32 true
	// AAA
	// BB
	// EOF
}
