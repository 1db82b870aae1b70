package main

import (
	"encoding/binary"
	"unsafe"
)

// readPairs reads the ABI's form of a header map: a count, two sizes per pair,
// then each key and value with a zero byte behind it. Keys come in lower case.
// The strings are b's own bytes, which nobody may change any more. A form that
// lies about a size is no header map, and neither is an empty one: nil.
func readPairs(b []byte) [][2]string {
	if len(b) < 4 {
		return nil
	}
	count := uint64(binary.LittleEndian.Uint32(b))
	at := 4 + 8*count
	if count == 0 || at > uint64(len(b)) {
		return nil
	}
	pairs := make([][2]string, count)
	for i := range 2 * count {
		size := uint64(binary.LittleEndian.Uint32(b[4+4*i:]))
		if at+size >= uint64(len(b)) {
			return nil
		}
		pairs[i/2][i%2] = unsafe.String(unsafe.SliceData(b[at:]), size)
		at += size + 1
	}
	for i := range pairs {
		pairs[i][0] = lower(pairs[i][0])
	}
	return pairs
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
