// Guest says what it finds where it runs, for the tests of kernelrun.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "orphan" {
		time.Sleep(time.Hour) // holds standard output open
	}
	found := map[string]any{"args": os.Args[1:], "mark": os.Getenv("MARK")}
	found["hostname"], _ = os.Hostname()
	dir, _ := os.Getwd()
	found["dir"] = dir
	data, err := os.ReadFile("testdata/word")
	found["testdata"] = fmt.Sprint(string(data), err)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "localhost:0"} {
		l, err := net.Listen("tcp", address)
		found[address] = fmt.Sprint(err)
		if err == nil {
			l.Close()
		}
	}
	for _, place := range []string{os.TempDir(), "/dev/shm"} {
		found[place] = fmt.Sprint(os.WriteFile(place+"/file", nil, 0o600))
	}
	var limit syscall.Rlimit
	syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	found["files"] = limit.Max
	_, err = os.Stat("/proc/self/fd/0")
	found["proc"] = fmt.Sprint(err)
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	found["release"] = strings.TrimSpace(string(release))
	orphan := exec.Command(os.Args[0], "orphan")
	orphan.Stdout = os.Stdout
	found["orphan"] = fmt.Sprint(orphan.Start())
	json.NewEncoder(os.Stdout).Encode(found)
	fmt.Print("\r\n\x00\xff\ttail")
	fmt.Fprint(os.Stderr, "to stderr\n")
	os.Exit(42)
}
