//go:build linux

package peer

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A message is one line: its kind, then JSON, which never holds a raw newline.
const (
	kindValue byte = 'v' // what Send was given
	kindError byte = 'e' // the text of the error that a Handler returned
)

func encode(kind byte, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("peer: send: %w", err)
	}
	line := make([]byte, 0, len(body)+2)
	line = append(line, kind)
	line = append(line, body...)
	return append(line, '\n'), nil
}

// decode stores the JSON of body in v; a nil v discards it.
func decode(body []byte, v any) error {
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("peer: receive: %w", err)
	}
	return nil
}

// inbox cuts a stream of bytes into messages. It keeps what has come of a
// message whose rest is still on its way, so a deadline in its middle loses nothing.
type inbox struct {
	data    []byte // received and not yet returned
	scanned int    // data[:scanned] holds no newline
	chunk   [4096]byte
}

// next returns the next message, reading as often as it takes. The body is
// valid until the next call.
func (in *inbox) next(read func([]byte) (int, error)) (kind byte, body []byte, err error) {
	for {
		if i := bytes.IndexByte(in.data[in.scanned:], '\n'); i >= 0 {
			return in.take(in.scanned + i)
		}
		in.scanned = len(in.data)
		n, err := read(in.chunk[:])
		in.data = append(in.data, in.chunk[:n]...)
		if n == 0 && err != nil {
			return 0, nil, err
		}
	}
}

func (in *inbox) take(end int) (kind byte, body []byte, err error) {
	line := in.data[:end]
	in.data, in.scanned = in.data[end+1:], 0
	if len(line) == 0 {
		return 0, nil, fmt.Errorf("peer: receive: empty message")
	}
	return line[0], line[1:], nil
}
