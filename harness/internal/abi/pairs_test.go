package abi

import (
	"reflect"
	"testing"
)

// TestPairs shows the layout of a map, the specification's own example.
func TestPairs(t *testing.T) {
	pairs := []Pair{{"a", "1"}, {"b", "22"}}
	want := "\x02\x00\x00\x00" + "\x01\x00\x00\x00\x01\x00\x00\x00" + "\x01\x00\x00\x00\x02\x00\x00\x00" + "a\x001\x00" + "b\x0022\x00"
	got := MarshalPairs(pairs)
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if back := UnmarshalPairs(got); !reflect.DeepEqual(back, pairs) {
		t.Errorf("back %v", back)
	}
	if got := MarshalPairs(nil); len(got) != 0 {
		t.Errorf("an empty map: %q", got)
	}
	if got := AppendPairs(nil, nil); string(got) != "\x00\x00\x00\x00" {
		t.Errorf("an empty property: %q", got)
	}
}

// TestPairsBroken shows that what is no map is an empty one.
func TestPairsBroken(t *testing.T) {
	for name, b := range map[string]string{
		"nothing":            "",
		"one byte":           "\x00",
		"no sizes":           "\x01\x00\x00\x00",
		"huge count":         "\xff\xff\xff\xff\x00\x00\x00\x00",
		"huge name":          "\x01\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00a\x00",
		"value missing":      "\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00a\x00",
		"no zero after name": "\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00ab\x00",
	} {
		if got := UnmarshalPairs([]byte(b)); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// FuzzPairs reads anything without a panic, and what it reads it writes back.
func FuzzPairs(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(MarshalPairs([]Pair{{"a", "1"}, {"", ""}, {"b", "22"}}))
	f.Add([]byte("\xff\xff\xff\x1f0000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		pairs := UnmarshalPairs(b)
		if again := UnmarshalPairs(MarshalPairs(pairs)); len(pairs) > 0 && !reflect.DeepEqual(again, pairs) {
			t.Errorf("%v became %v", pairs, again)
		}
	})
}
