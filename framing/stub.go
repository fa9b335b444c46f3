package framing

import "encoding/binary"

type Format interface {
	Append(dst, msg []byte) ([]byte, error)
	Next(data []byte) (msg []byte, size int, err error)
}
type lp struct{}

func LengthPrefix(width int, order binary.ByteOrder, max int) Format { return lp{} }
func (lp) Append(dst, msg []byte) ([]byte, error) {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(msg))), msg...), nil
}
func (lp) Next(d []byte) ([]byte, int, error) {
	if len(d) < 4 {
		return nil, 0, nil
	}
	n := int(binary.BigEndian.Uint32(d))
	if len(d) < 4+n {
		return nil, 0, nil
	}
	return d[4 : 4+n], 4 + n, nil
}
