package translate

import (
	"bytes"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

// The standard alphabet of RFC 4648: sextets[c] is the value of a digit, padding
// and white space have marks of their own, and everything else is wrong.
const (
	sextetWrong = 0x80 + iota
	sextetSpace
	sextetPad
)

var sextets = func() (t [256]byte) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range t {
		t[i] = sextetWrong
	}
	for i := range len(alphabet) {
		t[alphabet[i]] = byte(i)
	}
	for _, c := range " \t\r\n\f" {
		t[c] = sextetSpace
	}
	t['='] = sextetPad
	return t
}()

// base64Of checks base64 text and cuts white space out of it (decision 24). The
// result is a part of text where there is none. checked tells that text is known
// to be digits and at most two equals signs behind them.
func base64Of(text []byte, checked bool) ([]byte, *fault) {
	var digits int
	if checked {
		digits = len(bytes.TrimRight(text, "="))
	} else {
		digits = digitsEnd(text)
	}
	if digits < len(text) && sextets[text[digits]] == sextetSpace {
		text = withoutSpace(text)
		digits = digitsEnd(text)
	}
	pad := len(text) - digits
	switch {
	case len(text) == 0:
		return nil, bad("the base64 data is empty")
	case pad > 2, len(text)%4 != 0, pad > 0 && text[digits] != '=', pad > 1 && text[digits+1] != '=':
		return nil, bad("the base64 data is broken")
	}
	return text, nil
}

// digitsEnd is the offset of the first byte that is no digit.
func digitsEnd(text []byte) int {
	i := jsontext.Base64Words(text)
	for i < len(text) && sextets[text[i]] < 64 {
		i++
	}
	return i
}

func withoutSpace(text []byte) []byte {
	kept := make([]byte, len(text))
	n := 0
	for _, c := range text {
		kept[n] = c
		if sextets[c] != sextetSpace {
			n++
		}
	}
	return kept[:n]
}

// sniff tells from the first bytes of a file in base64 which type it is: one of
// imageTypes, pdfType, or "".
func sniff(text []byte) string {
	var head [12]byte
	n := 0
	for i := 0; i+4 <= len(text) && n < len(head); i += 4 {
		var bits uint32
		for k := i; k < i+4; k++ {
			bits = bits<<6 | uint32(sextets[text[k]]&63)
		}
		head[n], head[n+1], head[n+2] = byte(bits>>16), byte(bits>>8), byte(bits)
		n += 3
	}
	return sniffBytes(head[:n])
}

// sniffBytes is sniff for the bytes themselves; twelve are enough.
func sniffBytes(head []byte) string {
	begins := func(magic string) bool { return len(head) >= len(magic) && string(head[:len(magic)]) == magic }
	switch {
	case begins("\xff\xd8\xff"):
		return "image/jpeg"
	case begins("\x89PNG\r\n\x1a\n"):
		return "image/png"
	case begins("GIF87a"), begins("GIF89a"):
		return "image/gif"
	case begins("RIFF") && len(head) >= 12 && string(head[8:12]) == "WEBP":
		return "image/webp"
	case begins("%PDF-"):
		return pdfType
	}
	return ""
}
