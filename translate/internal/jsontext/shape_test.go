package jsontext

import (
	"strings"
	"testing"
)

func TestShape(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for size := range 40 {
		text := NewShape(letters[:size])
		if text.Size() != size {
			t.Fatalf("size %d, want %d", text.Size(), size)
		}
		for before := range 10 {
			for after := range 3 {
				b := []byte(strings.Repeat("-", before) + letters[:size] + strings.Repeat("-", after))
				for i := -1; i <= len(b)+1; i++ {
					want := size >= 8 && i == before && after > 0
					if text.At(b, i) != want {
						t.Fatalf("%d bytes at %d of %q: %v", size, i, b, !want)
					}
				}
				for i := before; size >= 8 && i < before+size; i++ {
					b[i]++
					if text.At(b, before) {
						t.Fatalf("%d bytes match %q at %d", size, b, before)
					}
					b[i]--
				}
			}
		}
	}
}
