package main

import "encoding/binary"

// wellFormedPairs checks the ABI's form of a header map: a count, two sizes
// per pair, then each key and value with a zero byte behind it.
func wellFormedPairs(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	count := uint64(binary.LittleEndian.Uint32(b))
	need := 4 + 8*count
	if need > uint64(len(b)) {
		return false
	}
	for i := uint64(0); i < 2*count; i++ {
		need += uint64(binary.LittleEndian.Uint32(b[4+4*i:])) + 1
	}
	return need <= uint64(len(b))
}

// appendPairs appends a header map in that form.
func appendPairs(dst []byte, pairs [][2]string) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(pairs)))
	for _, p := range pairs {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(p[0])))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(p[1])))
	}
	for _, p := range pairs {
		dst = append(append(dst, p[0]...), 0)
		dst = append(append(dst, p[1]...), 0)
	}
	return dst
}
