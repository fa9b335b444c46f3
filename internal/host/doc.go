// Package host tells what of a machine a benchmark's figures depend on: kernel,
// CPU, mitigations, virtualisation, limits. Linux only.
//
// Each fact is a short line in the form of the Go benchmark format
// (golang.org/design/14313-benchmark-format), as configuration or as comment.
package host
