package jsontext

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// TestNotBase64 looks at each byte in each place of a word, between digits and
// between bytes that are none. Up to the first wrong byte every bit must be right.
func TestNotBase64(t *testing.T) {
	for _, others := range []byte{'A', '/', 0, 0x7F, 0x80, 0xFF} {
		for place := range 8 {
			for c := range 256 {
				word := bytes.Repeat([]byte{others}, 8)
				word[place] = byte(c)
				got := notBase64(binary.LittleEndian.Uint64(word))
				for i, b := range word {
					want := strings.IndexByte(base64Alphabet, b) < 0
					if is := got>>(8*i+7)&1 == 1; is != want {
						t.Fatalf("%q, byte %d: %v", word, i, is)
					}
					if want {
						break
					}
				}
			}
		}
	}
}

// trueURL is when Value.Base64 may tell so, for data that is not too short. It
// must, where the URL is ASCII too.
var trueURL = regexp.MustCompile(`^data:[^,"\\]{0,110};base64,[A-Za-z0-9+/]{150,}={0,2}$`)

// TestBase64 changes data URLs in one place. A URL must say that it is checked
// when it is one, and be JSON exactly when it was.
func TestBase64(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	checked := 0
	for _, head := range []string{
		"data:image/png;base64,", "data:;base64,", "data:image/jpeg;charset=utf-8;base64,", "data:application/pdf;base64,",
		"data:image/png,", "DATA:image/png;base64,", "data:image/png;BASE64,", "data:a,b;base64,", "data:" + strings.Repeat("x", 120) + ";base64,", "datb:image/png;base64,",
	} {
		for size := 200; size < 212; size++ {
			data := make([]byte, size)
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			url := head + base64.StdEncoding.EncodeToString(data)
			for i := -1; i <= len(url); i++ {
				for _, b := range []string{"=", "==", "===", "-", "_", `\n`, `\/`, `\u0041`, `\u002c`, " ", ",", "A", "é", "\x80", "\x00"} {
					text := url
					if i >= 0 {
						text = url[:i] + b + url[min(len(url), i+1):]
					}
					checked += checkURL(t, text)
				}
			}
		}
	}
	if checked < 10_000 {
		t.Errorf("only %d URLs were checked ones: the test proves little", checked)
	}
}

func checkURL(t *testing.T, text string) (checked int) {
	t.Helper()
	quoted := []byte(`["` + text + `"]`)
	check(t, quoted)
	var d Doc
	if d.Scan(quoted, limits) != nil {
		return 0
	}
	it := d.Root().Items()
	it.Next()
	is, may := it.Value().Base64(), trueURL.MatchString(text)
	ascii := strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0
	if is && !may || !is && may && ascii {
		t.Fatalf("Base64 of %q is %v", text, is)
	}
	if is {
		checked = 1
	}
	return checked
}

func TestBase64Words(t *testing.T) {
	text := []byte(strings.Repeat(base64Alphabet, 2))
	for size := range len(text) {
		if n := Base64Words(text[:size]); n != size/8*8 {
			t.Errorf("%d of %d", n, size)
		}
		for i := range size {
			broken := bytes.Clone(text[:size])
			broken[i] = '-'
			if n := Base64Words(broken); n != min(i, size)/8*8 {
				t.Errorf("%d of %d with a wrong byte at %d", n, size, i)
			}
		}
	}
}
