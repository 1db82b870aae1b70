package main

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// half is the front of an event of about size bytes, as one that has not come whole.
func half(size int) string {
	return "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" +
		strings.Repeat("x", size)
}

const otherHalf = "\"}}\n\n"

// newLedgerVM is a VM whose unfinished things may have two megabytes.
func newLedgerVM(t *testing.T, configuration string) *fakeVM {
	v := newVM(t, configuration)
	v.plugin.ledger.bytesMax = 2 << 20
	return v
}

// streaming begins a streamed answer, and gives the client its first events.
func (v *fakeVM) streaming(first string) *gateway {
	g := v.ask(streamBody)
	v.on(g, func() {
		g.answerHeaders(false, [2]string{":status", "200"}, [2]string{"content-type", "text/event-stream"}, [2]string{"request-id", "req_up"})
		if first != "" {
			g.answerBody(first, false)
		}
	})
	return g
}

func (v *fakeVM) feed(g *gateway, piece string) { v.on(g, func() { g.answerBody(piece, false) }) }

// goesOn checks that a stream that has half of an event comes to its good end.
func (v *fakeVM) goesOn(g *gateway) {
	v.t.Helper()
	v.feed(g, otherHalf+blockStop+messageDelta+messageStop)
	v.on(g, func() { g.answerBody("", true) })
	v.end(g)
	g.wantStream()
	g.wantUsage(`"outcome":"ok"`)
}

func TestLargestEventFails(t *testing.T) {
	for _, config := range []string{"", `{"hold_headers":false}`} {
		v := newLedgerVM(t, config)
		first := messageStart + blockStart
		large, one, two := v.streaming(first), v.streaming(first), v.streaming(first)
		v.feed(large, half(900_000))
		v.feed(one, half(400_000))
		if large.x.stream.Done() || v.plugin.ledger.bytes > 2<<20 {
			t.Fatal("failed while there was room")
		}
		v.feed(two, half(500_000))
		if n := v.plugin.ledger.bytes; large.x.weight != 0 || n > 1_400_000 || n != one.x.weight+two.x.weight {
			t.Errorf("%d bytes, of the largest %d", n, large.x.weight)
		}
		large.wantUsage(`"outcome":"failed"`)
		chunks := len(large.clientChunks)
		v.feed(large, "more of it"+otherHalf)
		if len(large.clientChunks) != chunks+1 {
			t.Error("the stream hangs")
		}
		v.feed(large, wholeStream)
		v.on(large, func() { large.answerBody("", true) })
		v.end(large)
		large.wantStream()
		if !bytes.Contains(large.clientBody, []byte("The upstream's answer could not be read.")) || bytes.Contains(large.clientBody, []byte("xxx")) {
			t.Errorf("%.2000s", large.clientBody)
		}
		v.goesOn(one)
		v.goesOn(two)
		v.wantEmpty()
	}
}

func TestLargestEventIsTheOneThatComes(t *testing.T) {
	v := newLedgerVM(t, "")
	first := messageStart + blockStart
	one, large := v.streaming(first), v.streaming(first)
	v.feed(one, half(900_000))
	v.feed(large, textA+half(1_300_000))
	large.wantStream()
	if !bytes.Contains(large.clientBody, []byte(`"content":"A"`)) || !bytes.Contains(large.clientBody, []byte(`"error"`)) {
		t.Errorf("%.2000s", large.clientBody)
	}
	large.wantUsage(`"outcome":"failed"`)
	v.end(large)
	v.goesOn(one)
	v.wantEmpty()
}

// TestLargestEventIsTheFirst: no header has left, so it can still be a status.
func TestLargestEventIsTheFirst(t *testing.T) {
	v := newLedgerVM(t, "")
	large, one := v.streaming(""), v.streaming(messageStart+blockStart)
	v.feed(large, half(900_000))
	v.feed(one, half(500_000))
	two := v.streaming(messageStart + blockStart)
	v.feed(two, half(800_000))
	if !large.clientEnded {
		t.Error("the client waits though it could be told")
	}
	v.end(large)
	large.wantError(500, "The upstream's answer could not be read.")
	large.wantUsage(`"outcome":"upstream_error"`, `"status":500`)
	v.goesOn(one)
	v.goesOn(two)
	alone := v.streaming("")
	v.feed(alone, half(2_100_000))
	v.end(alone)
	alone.wantError(500, "The upstream's answer could not be read.")
	v.wantEmpty()
}

// TestLargestIsInputOfABlock: what a block brought in its start waits for its stop.
func TestLargestIsInputOfABlock(t *testing.T) {
	v := newLedgerVM(t, "")
	call := event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":"`+
		strings.Repeat("y", 1_200_000)+`"}}}`)
	large := v.streaming(messageStart)
	v.feed(large, call)
	if large.x.weight < 1_200_000 {
		t.Errorf("weight %d", large.x.weight)
	}
	v.feed(large, blockStop)
	if large.x.weight > 100_000 {
		t.Errorf("weight %d after the block's end", large.x.weight)
	}
	v.feed(large, strings.Replace(call, `"index":0`, `"index":1`, 1))
	one := v.streaming(messageStart + blockStart)
	v.feed(one, half(900_000))
	v.on(large, func() { large.answerBody("", true) })
	v.end(large)
	large.wantStream()
	large.wantUsage(`"outcome":"failed"`)
	v.goesOn(one)
	v.wantEmpty()
}

func TestLargestIsARequestWithImages(t *testing.T) {
	v := newLedgerVM(t, "")
	one := v.streaming(messageStart + blockStart)
	v.feed(one, half(400_000))
	large := v.ask(withImages("http://a.test/", "http://b.test/", "http://c.test/"))
	v.answer("http://a.test/", 200, file("a", 1_000_000))
	two := v.ask(withImages("http://d.test/", "http://e.test/"))
	v.answer("http://d.test/", 200, file("d", 600_000))
	large.wantError(503, `"code":"overloaded"`)
	large.wantUpstreamUntouched()
	large.wantUsage(`"outcome":"refused"`, `"status":503`)
	v.answer("http://b.test/", 200, smallFile)
	v.answer("http://c.test/", 200, smallFile)
	v.end(large)
	v.answer("http://e.test/", 200, smallFile)
	if !two.upEnded {
		t.Error("the smaller request waits")
	}
	v.end(two)
	own := v.ask(withImages("http://f.test/", "http://g.test/"))
	v.answer("http://f.test/", 200, file("f", 1_700_000))
	own.wantError(503, `"code":"overloaded"`)
	v.answer("http://g.test/", 200, smallFile)
	v.end(own)
	v.goesOn(one)
	v.wantEmpty()
}

// longPage is a page of the model list whose ids have n times 500 bytes.
func longPage(n int, more bool) string {
	out := strings.Builder{}
	out.WriteString(`{"data":[`)
	for i := range n {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(`{"type":"model","id":"` + strconv.Itoa(10_000+i) + strings.Repeat("m", 495) + `"}`)
	}
	out.WriteString(`],"has_more":` + strconv.FormatBool(more) + `,"last_id":"x"}`)
	return out.String()
}

func TestLargestIsAModelList(t *testing.T) {
	for _, config := range []string{"", `{"hold_headers":false}`} {
		v := newLedgerVM(t, config)
		large := v.stream()
		large.h.props["xds.cluster_name"] = "anthropic"
		v.on(large, func() {
			large.sendHeaders(getRequest("/openai/v1/models"), true)
			large.answer(200, longPage(2000, true))
		})
		if large.x.weight < 1_000_000 || len(v.calls) != 1 {
			t.Fatalf("weight %d, %d callouts", large.x.weight, len(v.calls))
		}
		one := v.streaming(messageStart + blockStart)
		v.feed(one, half(1_000_000))
		if large.x.weight != 0 {
			t.Errorf("weight %d", large.x.weight)
		}
		resumed := large.h.resumed
		v.answerNumber(0, 200, longPage(1, false))
		if large.h.resumed > resumed {
			large.releaseResponse(true)
		}
		v.end(large)
		if !large.clientEnded || !bytes.Contains(large.clientBody, []byte("The upstream's answer could not be read.")) {
			t.Errorf("%s: ended %v, %.300s", config, large.clientEnded, large.clientBody)
		}
		if config == "" {
			large.wantError(500)
		}
		v.goesOn(one)
		v.wantEmpty()
	}
	v := newLedgerVM(t, "")
	own := v.stream()
	v.on(own, func() {
		own.sendHeaders(getRequest("/openai/v1/models"), true)
		own.answer(200, longPage(4000, true))
	})
	v.end(own)
	own.wantError(500, "The upstream's answer could not be read.")
	v.wantEmpty()
}

// TestStreamOfTheLedgerVanishes: a host that has deleted the largest without a word.
func TestStreamOfTheLedgerVanishes(t *testing.T) {
	v := newLedgerVM(t, "")
	large, one := v.streaming(messageStart+blockStart), v.streaming(messageStart+blockStart)
	v.feed(large, half(900_000))
	large.h.gone = true
	v.feed(one, half(500_000))
	two := v.streaming(messageStart + blockStart)
	v.feed(two, half(500_000))
	if large.x.weight != 0 {
		t.Errorf("weight %d", large.x.weight)
	}
	v.goesOn(one)
	v.goesOn(two)
	v.wantEmpty()
}

// TestBugWhileSomethingIsShed: what another stream's callback stumbles over must
// neither keep its memory nor end that callback.
func TestBugWhileSomethingIsShed(t *testing.T) {
	v := newLedgerVM(t, "")
	large, one := v.streaming(""), v.streaming(messageStart+blockStart)
	v.feed(large, half(900_000))
	v.feed(one, half(500_000))
	large.x.host = &brokenHost{Host: large.h, name: "reply"}
	two := v.streaming(messageStart + blockStart)
	v.feed(two, half(800_000))
	if large.x.weight != 0 || v.plugin.ledger.bytes > 2<<20 {
		t.Errorf("%d bytes, of the largest %d", v.plugin.ledger.bytes, large.x.weight)
	}
	v.goesOn(one)
	v.goesOn(two)
	large.h.logs = slices.DeleteFunc(large.h.logs, func(line string) bool { return strings.HasPrefix(line, "critical: bug in the filter") })
	v.end(large)
	v.wantEmpty()
}

// TestLargeMemoryIsCollected: the ledger counts what is made, not what is held.
func TestLargeMemoryIsCollected(t *testing.T) {
	v := newVM(t, "")
	l := v.plugin.ledger
	g := v.streaming(messageStart + blockStart)
	collected := 0
	for range 40 {
		before := l.fresh
		v.feed(g, half(3_000_000))
		v.feed(g, otherHalf)
		if l.fresh < before {
			collected++
		}
		if l.fresh >= freshBytesMax {
			t.Fatalf("%d bytes since the last collection", l.fresh)
		}
	}
	if collected < 3 {
		t.Errorf("collected %d times in 120 MB of events", collected)
	}
	before := l.fresh
	for range 10_000 {
		v.feed(g, textA)
	}
	if l.fresh != before {
		t.Error("small events count")
	}
	v.end(g)
	v.wantEmpty()
}
