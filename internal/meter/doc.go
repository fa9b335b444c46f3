// Package meter reads what a process or thread has cost so far: CPU time and
// context switches. Linux only.
package meter
