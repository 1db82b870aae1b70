package main

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// readInto plays the host that copies a body in.
func readInto(a *arena, data []byte) ([]byte, bool) {
	a.expectBody()
	copy(a.allocate(len(data)), data)
	return a.takeBody(len(data))
}

func TestArenaBodiesHaveSlack(t *testing.T) {
	var a arena
	for _, size := range []int{1, 100, 70_000, 5_000_000, 10, 33_554_432, 0, 64 << 10} {
		data := bytes.Repeat([]byte{'x'}, size)
		body, ok := readInto(&a, data)
		if !ok || !bytes.Equal(body, data) {
			t.Fatalf("%d bytes do not come back", size)
		}
		if cap(body)-len(body) < bodySlackBytes || !bytes.Equal(body[size:size+bodySlackBytes], make([]byte, bodySlackBytes)) {
			t.Errorf("no slack behind %d bytes", size)
		}
		a.release(body)
	}
}

func TestArenaUsesItsMemoryAgain(t *testing.T) {
	var a arena
	big, _ := readInto(&a, make([]byte, 20_000_000))
	first := &big[0]
	a.release(big)
	if n := testing.AllocsPerRun(50, func() {
		body, _ := readInto(&a, big[:19_000_000])
		if &body[0] != first {
			t.Fatal("another place")
		}
		a.release(body)
	}); n != 0 {
		t.Errorf("%v allocations for each body", n)
	}
	// A larger one takes the place of the old memory, in steps.
	larger, _ := readInto(&a, make([]byte, 21_000_000))
	if cap(larger)%bodyStepBytes != 0 {
		t.Errorf("%d bytes are no whole step", cap(larger))
	}
	a.release(larger)
	if cap(a.body) != cap(larger) {
		t.Error("the larger memory was not kept")
	}
}

func TestArenaLendsTwoBodiesAtATime(t *testing.T) {
	var a arena
	outer, _ := readInto(&a, bytes.Repeat([]byte{'a'}, 100_000))
	inner, ok := readInto(&a, bytes.Repeat([]byte{'b'}, 10))
	if !ok || bytes.IndexByte(outer, 'b') >= 0 || bytes.IndexByte(inner, 'a') >= 0 {
		t.Fatal("the bodies share memory")
	}
	a.release(inner)
	a.release(outer)
	if cap(a.body) != cap(outer) {
		t.Error("the larger one was not kept")
	}
}

func TestArenaKeepsValuesApart(t *testing.T) {
	var a arena
	copy(a.allocate(5), "value")
	value, ok := a.takeValue(5)
	if _, again := a.takeValue(5); !ok || again || len(value) != 5 {
		t.Fatal("a value is not taken once")
	}
	body, _ := readInto(&a, []byte("body"))
	a.release(body)
	readInto(&a, []byte("BODY"))
	if string(value) != "value" {
		t.Error("a header value was overwritten")
	}
	if len(a.allocate(0)) == 0 {
		t.Error("no memory for an empty value: its address would be nil")
	}
}

func TestArenaWithoutABody(t *testing.T) {
	var a arena
	a.expectBody()
	if _, ok := a.takeBody(0); ok {
		t.Error("a body where the host wrote none")
	}
	if _, ok := a.takeValue(0); ok {
		t.Error("a value where the host wrote none")
	}
	// The expectation ends with it: the next allocation is a value.
	a.allocate(3)
	if _, ok := a.takeBody(3); ok {
		t.Error("a value was taken for a body")
	}
	if _, ok := readInto(&a, nil); !ok {
		t.Error("an empty body is one")
	}
}

func TestPairs(t *testing.T) {
	pairs := [][2]string{{":path", "/"}, {"empty", ""}}
	good := appendPairs(nil, pairs)
	if string(good) != "\x02\x00\x00\x00\x05\x00\x00\x00\x01\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00:path\x00/\x00empty\x00\x00" {
		t.Errorf("pairs %q", good)
	}
	if got := readPairs(good); !slices.Equal(got, pairs) {
		t.Errorf("%q came back", got)
	}
	if got := readPairs(appendPairs(nil, [][2]string{{"Content-Type", "A"}})); !slices.Equal(got, [][2]string{{"content-type", "A"}}) {
		t.Errorf("%q has a name with capitals", got)
	}
	if got := readPairs(appendPairs(nil, nil)); got != nil {
		t.Errorf("no pairs became %q", got)
	}
	for i := range good {
		if got := readPairs(good[:i]); got != nil {
			t.Errorf("%d of %d bytes are taken: %q", i, len(good), got)
		}
	}
	for _, lie := range []struct {
		at    int
		value uint32
	}{{0, 3}, {0, 1 << 31}, {0, 1<<32 - 1}, {4, 1000}, {4, 1<<32 - 1}, {16, 2}} {
		bad := bytes.Clone(good)
		binary.LittleEndian.PutUint32(bad[lie.at:], lie.value)
		if got := readPairs(bad); got != nil {
			t.Errorf("%d at %d is taken: %q", lie.value, lie.at, got)
		}
	}
}

func TestContextTable(t *testing.T) {
	var log []string
	c := newContextTable(func(text string) { log = append(log, text) })
	step := func(name string, got, want bool, line string) {
		t.Helper()
		var wantLog []string
		if line != "" {
			wantLog = []string{line}
		}
		if got != want || !slices.Equal(log, wantLog) {
			t.Errorf("%s: %v, log %q", name, got, log)
		}
		log = nil
	}
	const absent = "the host called for a context that is not there"
	const twice = "the host created a context twice"
	h := newFakeHost(t)
	step("stream without a plugin", c.addStream(5, 1, h), false, absent)
	step("plugin", c.addPlugin(1), true, "")
	step("plugin again", c.addPlugin(1), false, twice)
	c.plugins[1] = startPlugin(h, nil)
	step("stream", c.addStream(2, 1, h), true, "")
	step("stream again", c.addStream(2, 1, h), false, twice)
	step("stream with the plugin's id", c.addStream(1, 1, h), false, twice)
	step("plugin with the stream's id", c.addPlugin(2), false, twice)
	step("stream of a stream", c.addStream(3, 2, h), false, absent)
	step("phase of the stream", c.stream(2) != nil && c.stream(2).plugin == c.plugins[1], true, "")
	step("phase of the plugin as a stream", c.stream(1) != nil, false, absent)
	step("phase of nobody", c.stream(9) != nil, false, absent)
	step("callback of the plugin", c.hasPlugin(1), true, "")
	step("callback of the stream as a plugin", c.hasPlugin(2), false, absent)
	got := 0
	ended := func(plugin, call uint32) bool {
		done, ok := c.endCall(plugin, call)
		if ok {
			done(7)
		}
		return ok
	}
	const noCall = "the host answered a callout that is not under way"
	c.beginCall(1, 4, func(size int) { got += size })
	step("answer to another callout", ended(1, 5), false, noCall)
	step("answer to another plugin", ended(2, 4), false, noCall)
	step("answer", ended(1, 4), true, "")
	step("answer again", ended(1, 4), false, noCall)
	if got != 7 {
		t.Errorf("the answers had %d bytes", got)
	}
	x := c.stream(2)
	step("stream deleted", c.remove(2), false, "")
	if x.request != requestOver {
		t.Error("the exchange was not told that its stream has ended")
	}
	step("stream deleted again", c.remove(2), false, "the host deleted a context that is not there")
	size := 0
	c.beginCall(1, 6, func(n int) { size = n })
	step("plugin deleted", c.remove(1), true, "")
	if size != noAnswer {
		t.Error("nobody was told that the callout has gone with its plugin")
	}
	if len(c.calls) != 0 || len(c.plugins) != 0 || len(c.streams) != 0 {
		t.Errorf("left behind: %v %v %v", c.calls, c.plugins, c.streams)
	}
}

// TestPluginGoesAwayWhileItDownloads: no answer comes any more, and what its
// requests had of the VM's memory must come back to those of other plugins.
func TestPluginGoesAwayWhileItDownloads(t *testing.T) {
	c := newContextTable(func(text string) { t.Error(text) })
	v := newVM(t, "")
	v.plugin.images.shared, v.plugin.images.most = 3, 3
	other := startPlugin(newFakeHost(t), nil)
	other.images, other.ledger = v.plugin.images, v.plugin.ledger
	c.addPlugin(1)
	c.addPlugin(2)
	c.plugins[1], c.plugins[2] = v.plugin, other
	ended := v.ask(withImages("http://a.test/", "http://b.test/"))
	live := v.ask(withImages("http://c.test/", "http://d.test/"))
	c.streams[11], c.streams[12] = ended.x, live.x
	if len(v.calls) != 3 || v.plugin.images.underWay != 3 {
		t.Fatalf("callouts %q", v.urls())
	}
	for i, call := range v.calls {
		c.beginCall(1, uint32(i), func(size int) {
			if size != noAnswer {
				t.Errorf("an answer of %d bytes", size)
			}
			call.done(CallResult{})
		})
	}
	done := 0
	c.beginCall(2, 1, func(int) { done++ })
	v.at = ended.h
	c.remove(11)
	v.at = nil
	if v.plugin.images.underWay != 3 {
		t.Error("given back while the host owes answers")
	}
	v.calls = nil
	v.at = live.h
	if !c.remove(1) || len(c.streams) != 0 || len(c.calls) != 1 || done != 0 {
		t.Errorf("left: %d streams, %d callouts", len(c.streams), len(c.calls))
	}
	v.wantEmpty()
	if live.x.request != requestOver {
		t.Error("a stream of the plugin goes on")
	}
	c.endCall(2, 1)
	if !c.remove(2) {
		t.Error("the other plugin stays")
	}
}

// TestStreamBeforeItsPluginHasStarted: forwarding would send the client's bytes
// untranslated.
func TestStreamBeforeItsPluginHasStarted(t *testing.T) {
	c := newContextTable(func(text string) { t.Error(text) })
	h := newFakeHost(t)
	h.maps[RequestHeaders] = slices.Clone(goodRequest)
	c.addPlugin(1)
	c.addStream(2, 1, h)
	if a := c.stream(2).RequestHeaders(false); a != Pause || len(h.replies) != 1 || h.replies[0].status != 500 {
		t.Errorf("action %v, replies %v", a, h.replies)
	}
}
