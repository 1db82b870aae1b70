package abi

import "encoding/binary"

// MarshalPairs lays a map out as the ABI wants it:
//
//	count | len(name) len(value) … | name 00 value 00 …
//
// all numbers 32 bits, little endian. An empty map is no bytes at all.
func MarshalPairs(pairs []Pair) []byte {
	if len(pairs) == 0 {
		return nil
	}
	return AppendPairs(nil, pairs)
}

// AppendPairs does the same for a value that is never empty: properties write
// the count of an empty map.
func AppendPairs(dst []byte, pairs []Pair) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(pairs)))
	for _, p := range pairs {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(p.Name)))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(p.Value)))
	}
	for _, p := range pairs {
		dst = append(append(dst, p.Name...), 0)
		dst = append(append(dst, p.Value...), 0)
	}
	return dst
}

// UnmarshalPairs reads a map that a guest wrote. Like Envoy it takes anything
// that is not a map for an empty one.
func UnmarshalPairs(b []byte) []Pair {
	if len(b) < 4 {
		return nil
	}
	count := uint64(binary.LittleEndian.Uint32(b))
	at := 4 + 8*count
	if at > uint64(len(b)) {
		return nil
	}
	pairs := make([]Pair, count)
	sizes := b[4:at]
	take := func(i uint64) (string, bool) {
		size := uint64(binary.LittleEndian.Uint32(sizes[4*i:]))
		if at+size+1 > uint64(len(b)) || b[at+size] != 0 {
			return "", false
		}
		s := string(b[at : at+size])
		at += size + 1
		return s, true
	}
	for i := range pairs {
		var ok1, ok2 bool
		pairs[i].Name, ok1 = take(2 * uint64(i))
		pairs[i].Value, ok2 = take(2*uint64(i) + 1)
		if !ok1 || !ok2 {
			return nil
		}
	}
	return pairs
}
