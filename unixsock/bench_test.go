//go:build linux

package unixsock_test

import (
	"testing"

	"github.com/seed-e1736cc0/ipcbench/channeltest"
)

func BenchmarkLatency(b *testing.B)    { channeltest.Latency(b, mechanisms...) }
func BenchmarkThroughput(b *testing.B) { channeltest.Throughput(b, mechanisms...) }
func BenchmarkSelfLoop(b *testing.B)   { channeltest.SelfLoop(b, mechanisms...) }
func BenchmarkBoundaries(b *testing.B) { channeltest.Boundaries(b, mechanisms...) }
func BenchmarkTail(b *testing.B)       { channeltest.Tail(b, mechanisms...) }
func BenchmarkMessages(b *testing.B)   { channeltest.Messages(b, mechanisms...) }
