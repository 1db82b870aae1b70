package jsontext

import (
	"math/bits"
	"unsafe"
)

// longBytes is where a string begins to count as long. It is a multiple of
// eight, so that walks of eight bytes come by.
const longBytes = 128

// long goes on at i in a string of which longBytes bytes have been walked, with
// no escape among them. It returns where the general walk goes on: in front of
// what ends the run of plain ASCII, or in it.
//
// Nearly all of a request with an image is one string, a data URL in base64. A
// digit of base64 is plain ASCII too, so checking that all are digits, which
// somebody has to do, stands in for looking at them as JSON.
func (s *scanner) long(i int) (next int, flags uint8) {
	if data := s.dataURL(i - longBytes); data > 0 {
		if end := s.base64(data); end >= i {
			next = end
			for next < end+2 && s.at(next) == '=' {
				next++
			}
			if s.at(next) == '"' {
				flags = flagBase64
			}
			return next, flags
		}
	}
	for {
		if plain(s.load(i))|plain(s.load(i+8))|plain(s.load(i+16))|plain(s.load(i+24)) != 0 {
			return i, 0
		}
		i += 32
	}
}

// dataURL is the offset of the data where a string that begins at i is a data
// URL in base64, in its usual spelling; else 0.
func (s *scanner) dataURL(i int) int {
	const (
		begin = 'd' | 'a'<<8 | 't'<<16 | 'a'<<24 | ':'<<32
		end   = ';' | 'b'<<8 | 'a'<<16 | 's'<<24 | 'e'<<32 | '6'<<40 | '4'<<48 | ','<<56
	)
	if s.load(i)&(1<<40-1) != begin {
		return 0
	}
	for comma := i + 5; comma < i+longBytes; comma++ {
		if s.at(comma) == ',' {
			if s.load(comma-7) == end {
				return comma + 1
			}
			return 0
		}
	}
	return 0
}

// base64 is the offset of the first byte from i on that is no digit of base64.
func (s *scanner) base64(i int) int {
	for base64Digits(s.load(i))&base64Digits(s.load(i+8))&base64Digits(s.load(i+16))&base64Digits(s.load(i+24))&highs == highs {
		i += 32
	}
	for {
		if m := ^base64Digits(s.load(i)) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
}

// base64Digits has the high bit set for each byte of w that is a digit of base64
// (RFC 4648, section 4): a letter of either case, one of / and 0 to 9, which
// stand in a row, or +. Its other bits mean nothing.
func base64Digits(w uint64) uint64 {
	x := w &^ highs // no sum below carries into the next byte
	small := x | ones*0x20
	letter := (small + ones*(0x80-'a')) &^ (small + ones*(0x80-'z'-1))
	figure := (x + ones*(0x80-'/')) &^ (x + ones*(0x80-'9'-1))
	plus := ^((x ^ ones*'+') + ones*0x7F)
	return (letter | figure | plus) &^ w
}

// Base64Words is how many bytes at the front of b, in whole words of eight, are
// digits of base64.
func Base64Words(b []byte) int {
	base := unsafe.Pointer(unsafe.SliceData(b))
	i := 0
	for i+8 <= len(b) && base64Digits(wordAt(base, i))&highs == highs {
		i += 8
	}
	return i
}
