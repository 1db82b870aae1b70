// Package hash has the two hash functions that the core needs: one with a secret
// key for tables whose keys a client chooses, and one that nobody finds two texts
// for.
package hash

import (
	"math/bits"
	"unsafe"
)

// Key is the secret of a Sip. Whoever does not know it cannot choose texts that
// meet in a table.
type Key [2]uint64

// Sip is SipHash-1-3 (Aumasson and Bernstein; the hash of tables in several
// languages): one round a word of eight bytes, three at the end.
func Sip(key *Key, text []byte) uint64 {
	v0 := key[0] ^ 0x736f6d6570736575
	v1 := key[1] ^ 0x646f72616e646f6d
	v2 := key[0] ^ 0x6c7967656e657261
	v3 := key[1] ^ 0x7465646279746573
	base := unsafe.Pointer(unsafe.SliceData(text))
	n := len(text) &^ 7
	for i := 0; i < n; i += 8 {
		m := *(*uint64)(unsafe.Add(base, i))
		v3 ^= m
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
	}
	m := uint64(len(text)) << 56
	for i, c := range text[n:] {
		m |= uint64(c) << (8 * i)
	}
	v3 ^= m
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= m
	v2 ^= 0xff
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
