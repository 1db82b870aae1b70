package main

import (
	"strings"
	"testing"
)

// says gives a fatalText what the runtime writes, in pieces of n bytes, and
// returns what it wants to have logged.
func says(text string, n int) (remarks []string, causes []string) {
	var f fatalText
	for begin := 0; begin < len(text); begin += n {
		for rest := []byte(text[begin:min(begin+n, len(text))]); len(rest) > 0; {
			var kind fatalLine
			var line []byte
			switch kind, line, rest = f.take(rest); kind {
			case fatalRemark:
				remarks = append(remarks, string(line))
			case fatalCause:
				causes = append(causes, string(line))
			}
		}
	}
	return remarks, causes
}

// TestFatalText: of all that the runtime writes when it dies one line is left,
// wherever the pieces are cut, and no text that a request could have brought.
func TestFatalText(t *testing.T) {
	const trace = "\n\ngoroutine 1 [running]:\nmain.f({0x1, 0x2})\n\t/src/f.go:1 +0x2\nfatal error: again\n"
	long := strings.Repeat("x", 2*fatalTextBytesMax)
	for _, test := range []struct{ text, remark, cause string }{
		{"fatal error: out of memory" + trace, "", "fatal error: out of memory"},
		{"runtime: out of memory: cannot allocate 8-byte block (9 in use)\nfatal error: out of memory" + trace, "",
			"runtime: out of memory: cannot allocate 8-byte block (9 in use); fatal error: out of memory"},
		{"panic: runtime error: index out of range [5] with length 0" + trace, "", "panic: runtime error: index out of range [5] with length 0"},
		{"panic: interface conversion: interface {} is nil, not int" + trace, "", "panic: interface conversion: interface {} is nil, not int"},
		{"panic: words of a message\nruntime error: more" + trace, "", "panic: its text is not shown"},
		{"panic: runtime: words of a message" + trace, "", "panic: its text is not shown"},
		{"gc 1 @0.001s\n", "gc 1 @0.001s", ""},
		{"gc 1 @0.001s\nfatal error: x" + trace, "gc 1 @0.001s", "fatal error: x"},
		{"\n\n", "", ""},
		{"fatal error: no end of a line", "", ""},
		{"fatal error: " + long + trace, "", ("fatal error: " + long)[:fatalTextBytesMax]},
		{"runtime: " + long + "\nruntime: " + long + "\nfatal error: x" + trace, "",
			("runtime: " + long)[:fatalTextBytesMax-len("fatal error: x")] + "fatal error: x"},
		{"runtime: " + long + "\npanic: words" + trace, "",
			("runtime: " + long)[:fatalTextBytesMax-len("panic: its text is not shown")] + "panic: its text is not shown"},
	} {
		for _, n := range []int{1, 2, 7, 100, 1 << 20} {
			remarks, causes := says(test.text, n)
			if got := strings.Join(remarks, "|"); got != test.remark {
				t.Errorf("%.60q by %d: remarks %q, want %q", test.text, n, got, test.remark)
			}
			if got := strings.Join(causes, "|"); got != test.cause {
				t.Errorf("%.60q by %d: causes %q, want %q", test.text, n, got, test.cause)
			}
		}
	}
}

// TestFatalTextAllocatesNothing: the runtime may be dying of just that.
func TestFatalTextAllocatesNothing(t *testing.T) {
	text := []byte("runtime: 1\nfatal error: out of memory\ngoroutine 1\n")
	id := strings.Repeat("a", requestIDBytesMax)
	var f fatalText
	var headers [fatalHeadersBytesMax]byte
	if n := testing.AllocsPerRun(10, func() {
		f = fatalText{}
		for rest := text; len(rest) > 0; {
			_, _, rest = f.take(rest)
		}
		if got := appendFatalHeaders(headers[:0], id); &got[0] != &headers[0] {
			t.Error("the headers do not fit")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFatalReply: with the request's id, as every reply, where it is known.
func TestFatalReply(t *testing.T) {
	if fatalReply.Status != 503 || fatalReply.Code != "overloaded" {
		t.Errorf("%+v", fatalReply)
	}
	for id, want := range map[string]int{"": 2, "req_1": 4} {
		pairs := readPairs(appendFatalHeaders(nil, id))
		if len(pairs) != want || lookup(pairs, "request-id") != id || lookup(pairs, "x-request-id") != id || lookup(pairs, "retry-after") != "1" {
			t.Errorf("%q: %q", id, pairs)
		}
	}
}
