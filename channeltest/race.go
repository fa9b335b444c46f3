//go:build race

package channeltest

const raceEnabled = true
