package jsontext

import (
	"math/bits"
	"unsafe"
)

// longBytes is where a string begins to count as long. It is a multiple of
// eight, so that walks of eight bytes come by.
const longBytes = 128

// long looks at a string of which longBytes bytes have been walked, up to i, with
// no escape among them. It returns where the general walk goes on.
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
	return i, 0
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
			if comma < i+len("data:;base64") || s.load(comma-7) != end {
				return 0
			}
			return comma + 1
		}
	}
	return 0
}

// base64 is the offset of the first byte from i on that is no digit of base64. It
// reads eight words a turn, which lie within Slack.
func (s *scanner) base64(i int) int {
	for {
		p := unsafe.Add(s.base, i)
		wrong := notBase64(wordAt(p, 0)) | notBase64(wordAt(p, 8)) | notBase64(wordAt(p, 16)) | notBase64(wordAt(p, 24)) |
			notBase64(wordAt(p, 32)) | notBase64(wordAt(p, 40)) | notBase64(wordAt(p, 48)) | notBase64(wordAt(p, 56))
		if wrong&highs != 0 {
			break
		}
		i += 64
	}
	for {
		if m := notBase64(s.load(i)) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
}

// notBase64 has the high bit set for each byte of w that is no digit of base64
// (RFC 4648, section 4): neither a letter of either case, nor one of / and 0 to
// 9, which stand in a row, nor +. Above the first such byte bits may be false.
// Bits that are not high mean nothing.
//
// A byte is in a range where it is at least its begin and not above its end. Each
// is an addition or subtraction that changes the high bit and, for ASCII, carries
// nothing into the next byte.
func notBase64(w uint64) uint64 {
	small := w | ones*0x20
	letter := (small + ones*(0x80-'a')) ^ (ones*(0x80+'z') - small)
	figure := (w + ones*(0x80-'/')) ^ (ones*(0x80+'9') - w)
	plus := (w ^ ones*'+') + ones*0x7F
	return letter&figure&plus | w
}

// Base64Words is how many bytes at the front of b, in whole words of eight, are
// digits of base64.
func Base64Words(b []byte) int {
	base := unsafe.Pointer(unsafe.SliceData(b))
	i := 0
	for i+8 <= len(b) && notBase64(wordAt(base, i))&highs == 0 {
		i += 8
	}
	return i
}
