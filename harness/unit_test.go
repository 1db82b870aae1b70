package harness

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"ezat.io/chat-completions/harness/internal/abi"
)

// TestHeaders shows the order and the names of a map. That Envoy does the same
// is in testdata/header-map-edits.txtar and header-add-joins.txtar.
func TestHeaders(t *testing.T) {
	h := NewHeaders("x-b", "1", ":path", "/", "X-A", "2", ":method", "GET", "x-b", "3", "Host", "me", "accept", "a", "Accept", "b")
	if got, want := h.String(), ":path: /\n:method: GET\n:authority: me\nx-b: 1\nx-a: 2\nx-b: 3\naccept: a,b\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := fmt.Sprintf("%v %s %s %q", h.Values("X-B"), h.Get("x-b"), h.Get("host"), h.Get("none")); got != `[1 3] 1 me ""` {
		t.Errorf("got %s", got)
	}
	c := h.Clone()
	c.Set("X-B", "new")
	c.Remove("HOST")
	c.Set(":status", "200")
	if got, want := c.String(), ":path: /\n:method: GET\n:status: 200\nx-a: 2\naccept: a,b\nx-b: new\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if h.Get("x-b") != "1" {
		t.Error("the clone shares memory")
	}
	if got := NewHeaders("ab", "c", "d", "").Bytes(); got != 4 {
		t.Errorf("%d bytes", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("an odd number of strings passes")
		}
	}()
	NewHeaders("a")
}

// TestBodyBuffer holds the buffer against a plain slice of bytes, over seeded
// random edits.
func TestBodyBuffer(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		piece := func() []byte {
			b := make([]byte, rnd.IntN([]int{1, 10, 6000}[rnd.IntN(3)]))
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
			return b
		}
		var b bodyBuffer
		var model []byte
		for range 40 {
			data, n := piece(), rnd.IntN(len(model)+10)
			switch rnd.IntN(6) {
			case 0:
				b.add(bytes.Clone(data))
				model = append(model, data...)
			case 1:
				b.drain(n)
				model = model[min(n, len(model)):]
			case 2:
				other := &bodyBuffer{}
				other.add(bytes.Clone(data))
				b.move(other)
				model = append(model, data...)
				if other.Len() != 0 {
					t.Fatal("move leaves something")
				}
			case 3:
				st := b.Replace(0, uint32(n), bytes.Clone(data))
				model = append(bytes.Clone(data), model[min(n, len(model)):]...)
				if st != abi.OK {
					t.Fatalf("replace at 0: %d", st)
				}
			case 4:
				start := 1 + rnd.IntN(len(model)+5)
				st := b.Replace(uint32(start), uint32(n), bytes.Clone(data))
				if wanted := map[bool]abi.Status{true: abi.OK, false: abi.BadArgument}[start >= len(model)]; st != wanted {
					t.Fatalf("replace at %d of %d: %d", start, len(model), st)
				}
				if st == abi.OK {
					model = append(model, data...)
				}
			case 5:
				if taken := bytes.Join(b.take(), nil); !bytes.Equal(taken, model) {
					t.Fatalf("seed %d: took %d bytes, want %d", seed, len(taken), len(model))
				}
				model = nil
			}
			start := rnd.IntN(len(model) + 1)
			got := make([]byte, rnd.IntN(len(model)-start+1))
			b.CopyTo(got, start)
			if b.Len() != len(model) || !bytes.Equal(got, model[start:start+len(got)]) {
				t.Fatalf("seed %d: %d bytes, want %d", seed, b.Len(), len(model))
			}
		}
	}
}

// TestBodyBufferBound shows the end of what one buffer takes.
func TestBodyBufferBound(t *testing.T) {
	b := bodyBuffer{size: bodyBytesMax - 1}
	if st := b.Replace(1<<31-1, 0, []byte("ab")); st != abi.BadArgument {
		t.Errorf("status %d", st)
	}
}

// TestWatermarks shows that a limit is told once, until half of it is free.
func TestWatermarks(t *testing.T) {
	var told []string
	b := bodyBuffer{limit: 10, onHigh: func() { told = append(told, "high") }, onLow: func() { told = append(told, "low") }}
	for _, n := range []int{10, 1, 5} {
		b.add(make([]byte, n))
	}
	b.drain(10) // 6 are left
	b.add(make([]byte, 10))
	b.drain(11) // 5 are left
	b.add(make([]byte, 6))
	b.take()
	if got := fmt.Sprint(told); got != "[high low high low]" {
		t.Errorf("told %s", got)
	}
}

// TestFakeClock shows timers in order of time, set and stopped while others run.
func TestFakeClock(t *testing.T) {
	c := NewFakeClock()
	var got []string
	note := func(s string) func() {
		return func() { got = append(got, fmt.Sprint(s, c.Now().Sub(FakeEpoch).Milliseconds())) }
	}
	c.AfterFunc(30*time.Millisecond, note("c"))
	c.AfterFunc(10*time.Millisecond, func() {
		note("a")()
		c.AfterFunc(10*time.Millisecond, note("b"))
	})
	stop := c.AfterFunc(20*time.Millisecond, note("never"))
	if !stop() || stop() {
		t.Error("stop says the wrong thing")
	}
	late := c.AfterFunc(time.Hour, note("never"))
	c.Advance(25 * time.Millisecond)
	c.Advance(25 * time.Millisecond)
	if want := []string{"a10", "b20", "c30"}; !reflect.DeepEqual(got, want) || c.Now().Sub(FakeEpoch) != 50*time.Millisecond {
		t.Errorf("got %v at %v", got, c.Now())
	}
	if !late() {
		t.Error("a timer that waits cannot be stopped")
	}
}

// TestRealClock shows that it moves.
func TestRealClock(t *testing.T) {
	c := RealClock()
	before, fired := c.Now(), make(chan struct{})
	c.AfterFunc(time.Millisecond, func() { close(fired) })
	<-fired
	if !c.Now().After(before) {
		t.Error("it stands still")
	}
	if stop := c.AfterFunc(time.Hour, func() {}); !stop() {
		t.Error("a timer that waits cannot be stopped")
	}
}

// TestRequestFaults shows what Envoy's codec refuses to send.
func TestRequestFaults(t *testing.T) {
	good := []string{":method", "GET", ":path", "/"}
	for name, test := range map[string]struct {
		pairs []string
		want  string
	}{
		"good":       {good, ""},
		"no method":  {good[2:], "missing required header: :method"},
		"no path":    {good[:2], "missing required header: :path"},
		"line break": {append(good[:4:4], "a", "b\nc"), "invalid header value for: a"},
		"zero byte":  {append(good[:4:4], "a", "b\x00c"), "invalid header value for: a"},
		"a space":    {append(good[:4:4], "a b", "c"), "invalid header name: a b"},
		"no name":    {append(good[:4:4], "", "c"), "invalid header name: "},
	} {
		if got := requestFault(NewHeaders(test.pairs...)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestAddressProperties shows addresses in their parts.
func TestAddressProperties(t *testing.T) {
	for address, port := range map[string]int64{"127.0.0.1:8080": 8080, "[::1]:1": 1, "example": -1, "a:b": -1} {
		p, ok := addressProperty(address, []string{"port"})
		wanted, _ := numberProperty(port)
		if ok != (port >= 0) || ok && p.text != wanted.text {
			t.Errorf("port of %s: %q %v", address, p.text, ok)
		}
	}
}
