package sse

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// cut plays a stream in pieces that end where cuts says, and gives the events.
func cut(t *testing.T, stream string, eventBytesMax int, cuts func(left int) int) (events []string, tooLarge bool) {
	t.Helper()
	r := NewReader(eventBytesMax)
	left := []byte(stream)
	for {
		n := min(cuts(len(left)), len(left))
		// The piece is a copy that is overwritten when it is used up: nothing
		// may point into it later.
		piece := bytes.Clone(left[:n])
		left = left[n:]
		r.Push(piece, len(left) == 0)
		for {
			data, ok := r.Next()
			if !ok {
				break
			}
			for _, zero := range data[len(data) : len(data)+Slack] {
				if zero != 0 {
					t.Fatalf("no zeros behind the event %q", data)
				}
			}
			events = append(events, string(data))
		}
		for i := range piece {
			piece[i] = 'x'
		}
		if len(left) == 0 {
			return events, r.TooLarge()
		}
	}
}

func whole(left int) int { return left }
func single(int) int     { return 1 }

// atEveryCut plays a stream whole, byte by byte, in two pieces at every place
// and in random pieces, and demands the same events each time.
func atEveryCut(t *testing.T, stream string, eventBytesMax int) ([]string, bool) {
	t.Helper()
	want, wantLarge := cut(t, stream, eventBytesMax, whole)
	check := func(how string, cuts func(int) int) {
		got, large := cut(t, stream, eventBytesMax, cuts)
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) || large != wantLarge {
			t.Fatalf("%s of %q gave %q (too large: %v), whole %q (%v)", how, stream, got, large, want, wantLarge)
		}
	}
	check("byte by byte", single)
	for at := 1; at < len(stream) && at < 300; at++ {
		first := true
		check(fmt.Sprintf("cut at %d", at), func(left int) int {
			if first {
				first = false
				return at
			}
			return left
		})
	}
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		check(fmt.Sprintf("random cuts, seed %d", seed), func(int) int { return rnd.IntN(9) })
	}
	return want, wantLarge
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         []string
	}{
		{"nothing", "", nil},
		{"one", "data: a\n\n", []string{"a"}},
		{"with its name", "event: x\ndata: a\n\nevent: y\ndata: b\n\n", []string{"a", "b"}},
		{"CRLF", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		{"CR", "event: x\rdata: a\r\rdata: b\r\r", []string{"a", "b"}},
		{"mixed ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\ndata: d\n\r", []string{"a", "b", "c", "d"}},
		{"one CRLF is one end", "data: a\r\ndata: b\r\n\r\n", []string{"a\nb"}},
		{"no space behind the colon", "data:a\n\n", []string{"a"}},
		{"one space is dropped", "data:  a \n\n", []string{" a "}},
		{"several data lines", "data: a\ndata:\ndata: b\n\n", []string{"a\n\nb"}},
		{"comments", ": ping\ndata: a\n: x\ndata: b\n:\n\n: end\n\n", []string{"a\nb"}},
		{"other fields", "id: 1\nretry: 5\ndatax: no\ndat: no\nData: no\n data: no\ndata: a\nfoo\n\n", []string{"a"}},
		{"empty data is no event", "data\n\ndata:\n\nevent: x\n\ndata: a\n\n", []string{"a"}},
		{"blank lines", "\n\n\r\n\ndata: a\n\n\n\n", []string{"a"}},
		{"byte order mark", "\uFEFFdata: a\n\n\uFEFFdata: b\n\n", []string{"a"}},
		{"byte order mark alone", "\uFEFF\ndata: a\n\n", []string{"a"}},
		{"part of a byte order mark", "\xEF\xBBdata: a\n\ndata: b\n\n", []string{"b"}},
		{"no blank line at the end", "data: a\n\ndata: b\n", []string{"a", "b"}},
		{"no line end at the end", "data: a\n\ndata: b", []string{"a", "b"}},
		{"field name at the end", "data: a\n\ndat", []string{"a"}},
		{"CR at the end", "data: a\r", []string{"a"}},
		{"colon in the data", "data: data: x:\n\n", []string{"data: x:"}},
		{"NUL and bytes that are not UTF-8", "data: \x00\xff\n\n", []string{"\x00\xff"}},
		{"U+2028 ends no line", "data: a\u2028\u0085b\x0b\x0c\n\n", []string{"a\u2028\u0085b\x0b\x0c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, large := atEveryCut(t, c.stream, 1<<20)
			if large || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("got %q (too large: %v), want %q", got, large, c.want)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         int // events before the end
		large        bool
	}{
		{"just fits", "data: " + strings.Repeat("a", 26) + "\n\n", 1, false},
		{"one byte more", "data: a\n\ndata: " + strings.Repeat("a", 27) + "\n\ndata: b\n\n", 1, true},
		{"in many lines", strings.Repeat("data: 1234\n", 9) + "\n", 0, true},
		{"a comment", ": " + strings.Repeat("a", 31) + "\n\n", 0, true},
		{"a line without an end", strings.Repeat("a", 33), 0, true},
		{"many comments are no event", strings.Repeat(": ping\n", 50) + "data: a\n\n", 1, false},
		{"many events", strings.Repeat("data: 123\n\n", 50), 50, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, large := atEveryCut(t, c.stream, 32)
			if len(got) != c.want || large != c.large {
				t.Errorf("got %q (too large: %v), want %d events (%v)", got, large, c.want, c.large)
			}
		})
	}
}

// TestWhole passes over events in place wherever Whole offers them; the others
// come through Next as ever.
func TestWhole(t *testing.T) {
	const stream = "data: a\n\ndata: b\n\nevent: x\r\ndata: c\r\n\r\ndata: d\n\ndata: e\n\ndata: f"
	for size := 1; size <= len(stream); size++ {
		r := NewReader(1 << 20)
		var got []string
		for at := 0; at < len(stream); at += size {
			r.Push([]byte(stream[at:min(at+size, len(stream))]), at+size >= len(stream))
			for {
				if in := r.Whole(); len(in) > 9 && bytes.HasPrefix(in, []byte("data: ")) && string(in[7:9]) == "\n\n" {
					got = append(got, string(in[6:7]))
					r.Skip(9)
					continue
				}
				data, ok := r.Next()
				if !ok {
					break
				}
				got = append(got, string(data))
			}
		}
		if s := strings.Join(got, ""); s != "abcdef" {
			t.Errorf("pieces of %d bytes gave %q", size, got)
		}
	}
}

// TestLargeEventIsLetGo has one large event in a long stream: its memory must
// not stay.
func TestLargeEventIsLetGo(t *testing.T) {
	r := NewReader(1 << 20)
	r.Push([]byte("data: "+strings.Repeat("a", 500_000)+"\n\ndata: b\n\n"), false)
	if data, ok := r.Next(); !ok || len(data) != 500_000 {
		t.Fatal("the large event did not come")
	}
	if data, ok := r.Next(); !ok || string(data) != "b" || cap(r.buf) > keepBytesMax {
		t.Errorf("next event %q, buffer of %d bytes", data, cap(r.buf))
	}
}

// TestLinear counts the work on hostile pieces by their growth: a search that
// starts anew for each line would take minutes here.
func TestLinear(t *testing.T) {
	for _, c := range []string{"\r", "\n", "\r\n", ":\n", "data:a\r", "data:a\r\r", "data:a\n\n", "x"} {
		stream := strings.Repeat(c, 4_000_000/len(c))
		cut(t, stream, 16<<20, whole)
		cut(t, stream, 16<<20, func(int) int { return 1000 })
	}
}

func TestNoAllocation(t *testing.T) {
	r := NewReader(1 << 20)
	stream := []byte("event: x\ndata: some text\n\nevent: y\ndata: some\ndata: more\n\n: ping\nda")
	rest := []byte("ta: cut\n\n")
	events := 0
	play := func() {
		for _, piece := range [][]byte{stream, rest} {
			r.Push(piece, false)
			for {
				if _, ok := r.Next(); !ok {
					break
				}
				events++
			}
		}
	}
	play()
	if n := testing.AllocsPerRun(100, play); n != 0 || events != 3*102 {
		t.Errorf("%v allocations, %d events", n, events)
	}
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{"data: a\r\ndata: b\n\n: c\r\revent: x\rdata", "\uFEFFdata:a\n\n\r\rdata: 012345678901234567890123456789\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) { atEveryCut(t, string(stream), 32) })
}

// TestHeldGrowsByDoubling: an event in parts leaves little behind of outgrown buffers.
func TestHeldGrowsByDoubling(t *testing.T) {
	r := NewReader(16 << 20)
	piece := bytes.Repeat([]byte{'x'}, 10_000)
	made, held := 0, 0
	for n := 0; n < 15<<20; n += len(piece) {
		r.Push(piece, false)
		if _, ok := r.Next(); ok {
			t.Fatal("an event without an end")
		}
		if now := r.Held(); now != held {
			made, held = made+now, now
		}
	}
	if held < 15<<20 || held > 16<<20+2*Slack || made > 5*held/2 {
		t.Errorf("%d bytes held, %d made", held, made)
	}
	r.Push([]byte("\n\ndata: a\n\n"), false)
	if data, ok := r.Next(); !ok || string(data) != "a" {
		t.Errorf("%q", data)
	}
	r.Next()
	if r.Held() > keepBytesMax {
		t.Errorf("%d bytes are kept", r.Held())
	}
}
