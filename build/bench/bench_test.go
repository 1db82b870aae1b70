package main

import (
	"bytes"
	"context"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/build/bench/work"
	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/harness"
)

// The short form of the benchmarks: what does not depend on how fast the
// machine is just now. Times are measured by `make bench`.

func root(t *testing.T) string {
	t.Helper()
	dir, err := envoy.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func shippedModule(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), "build/out/chat-completions.wasm"))
	if err != nil {
		t.Fatalf("the module is missing: run `make wasm`: %v", err)
	}
	return b
}

func TestModuleSize(t *testing.T) {
	plain, gzipped, err := sizes(filepath.Join(root(t), "build/out/chat-completions.wasm"))
	if err != nil {
		t.Fatalf("the module is missing: run `make wasm`: %v", err)
	}
	if plain > moduleBytesMax {
		t.Errorf("%d bytes, the budget is %d", plain, moduleBytesMax)
	}
	if gzipped > moduleGzippedBytesMax {
		t.Errorf("%d bytes gzipped, the budget is %d", gzipped, moduleGzippedBytesMax)
	}
}

// TestRunningStreamDoesNotAllocate counts natively and in a guest. A stream is
// fed one event at a time and many at once.
func TestRunningStreamDoesNotAllocate(t *testing.T) {
	m := modules{core: plainGuest(t, "core"), yardstick: plainGuest(t, "yardstick")}
	wazero, err := newInHarness(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	defer wazero.close()
	for name, p := range map[string]place{"native": native{}, "wazero": wazero} {
		for _, it := range items() {
			if it.loops[0] != "text" && it.loops[0] != "arguments" {
				continue
			}
			f, err := p.run(it.loops[0], it.body, 20*time.Millisecond)
			// A busy machine gets fewer turns done in a time: what counts is the turns.
			for longer := 40 * time.Millisecond; err == nil && f.Turns < 1000 && longer < 10*time.Second; longer *= 2 {
				f, err = p.run(it.loops[0], it.body, longer)
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", name, it.name, err)
			}
			// What else the process does is in the figure, a few times a run.
			if f.Turns < 1000 || f.Mallocs > uint64(f.Turns)/100 {
				t.Errorf("%s: %s: %d allocations in %d turns", name, it.name, f.Mallocs, f.Turns)
			}
		}
	}
}

// plainGuest builds one of the benchmarks' modules as Go builds it.
func plainGuest(t *testing.T, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name+".wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./guest/"+name)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// withMemory runs the product in a VM that can grow to so many bytes.
func withMemory(t *testing.T, limit int) *harness.Host {
	t.Helper()
	host, err := harness.New(t.Context(), shippedModule(t), harness.Config{
		Clusters: map[string]harness.Cluster{"anthropic": {}}, BufferBytesMax: 128 << 20, MemoryBytesMax: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return host
}

// chatHeaders are those of a chat request.
var chatHeaders = harness.NewHeaders(":method", "POST", ":scheme", "https", ":path", "/openai/v1/chat/completions", ":authority", "gateway.test",
	"authorization", "Bearer sk-bench", "content-type", "application/json")

// ask takes one body through the product and sees that it went upstream.
func ask(t *testing.T, host *harness.Host, body []byte) {
	t.Helper()
	answer, sent, err := host.Do(t.Context(), harness.Exchange{
		Request: harness.Message{Headers: chatHeaders, Body: body},
		Upstream: func(harness.Message) harness.Message {
			return harness.Message{Headers: harness.NewHeaders(":status", "200", "content-type", "application/json"), Body: work.Answer()}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if status := answer.Headers.Get(":status"); status != "200" || len(sent.Body) < len(body)/4 {
		t.Fatalf("status %s, %d bytes went upstream for %d: %.300s\n%v", status, len(sent.Body), len(body), answer.Body, lastLines(host))
	}
}

func lastLines(host *harness.Host) []harness.LogLine {
	lines := host.Log()
	return lines[max(0, len(lines)-5):]
}

// TestImagesStayWithinMemory gives the guest no more memory than the budget for
// one image of 24 MB, and sends many: in a row, and on streams that are open at
// the same time.
func TestImagesStayWithinMemory(t *testing.T) {
	body := work.Image(24 << 20)
	host := withMemory(t, int(memoryBodyTimes*float64(len(body))+memoryBaseBytes))
	for range imagesInARow {
		ask(t, host, body)
	}
	var streams [connectionsForLoad]*harness.Stream
	for i := range streams {
		streams[i] = host.NewStream()
		if err := streams[i].RequestHeaders(chatHeaders.Clone(), false); err != nil {
			t.Fatal(err)
		}
		if err := streams[i].RequestBody(body, false); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range streams {
		if err := s.RequestBody(nil, true); err != nil {
			t.Fatal(err)
		}
		if sent := s.Upstream(); !sent.Ended || len(sent.Body) < len(body) {
			t.Fatalf("stream %d: %d bytes went upstream, ended: %v\n%v", i, len(sent.Body), sent.Ended, lastLines(host))
		}
		s.ClientLeaves()
	}
}

// TestWorstInputsAreBounded gives the guest half of the memory that Envoy
// gives a VM, and sends what costs most.
func TestWorstInputsAreBounded(t *testing.T) {
	host := withMemory(t, 512<<20)
	for _, it := range costly() {
		t.Run(it.name, func(t *testing.T) { ask(t, host, it.body) })
	}
}

// TestWorkIsAsNamed holds the work items to the sizes that the budgets name.
func TestWorkIsAsNamed(t *testing.T) {
	for _, w := range []struct {
		name     string
		body     []byte
		from, to int
	}{
		{nameSmall, work.SmallChat(), 900, 1200},
		{nameAgent, work.AgentTurn(), 80_000, 115_000},
		{"128 KB talk", work.Conversation(128 << 10), 120_000, 140_000},
		{nameImage, work.Image(24 << 20), 24 << 20, 24<<20 + 1000},
	} {
		if n := len(w.body); n < w.from || n > w.to {
			t.Errorf("%s has %d bytes", w.name, n)
		}
	}
	turn := work.AgentTurn()
	if messages, tools := bytes.Count(turn, []byte(`"role":`)), bytes.Count(turn, []byte(`"parameters":`)); messages != 60 || tools != 20 {
		t.Errorf("the agent turn has %d messages and %d tools", messages, tools)
	}
}

func TestVerdicts(t *testing.T) {
	r := &report{progress: &bytes.Buffer{}}
	r.add(
		row{"s", "kept", 1, "ms", atMost(1), ""},
		row{"s", "broken", 1.01, "ms", atMost(1), ""},
		row{"s", "no number", math.NaN(), "ms", atMost(1), ""},
		row{"s", "enough", 0.7, "", atLeast(0.7), ""},
		row{"s", "not enough", 0.69, "", atLeast(0.7), ""},
		row{"s", "shown", 5, "ms", nil, ""},
		row{"s", "over, as known", 1.5, "ms", atMost(1).reached(1.5), ""},
		row{"s", "worse than known", 1.51, "ms", atMost(1).reached(1.5), ""},
		row{"s", "within after all", 1, "ms", atMost(1).reached(1.5), ""},
		row{"s", "too few, as known", 0.4, "", atLeast(0.7).reached(0.4), ""},
		row{"s", "fewer than known", 0.39, "", atLeast(0.7).reached(0.4), ""},
	)
	var names []string
	for _, b := range r.broken() {
		names = append(names, b.Work)
	}
	if got := strings.Join(names, ","); got != "broken,no number,not enough,worse than known,fewer than known" {
		t.Errorf("broken: %s", got)
	}
	for verdict, want := range map[string]int{"| **FAIL** |": 5, "| over |": 2, "| pass |": 3} {
		if n := strings.Count(r.markdown(), verdict); n != want {
			t.Errorf("the table has %s %d times, not %d:\n%s", verdict, n, want, r.markdown())
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 3_230_431: "3,230,431", 1234.5: "1,234", 12.34: "12.3", 1.234: "1.23", 0.1234: "0.123", -0.25: "-0.250", -1234: "-1,234", 100: "100"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// TestMessages cuts messages at every byte: where they are cut changes nothing.
func TestMessages(t *testing.T) {
	reply := append([]byte(streamHead), chunk([]byte("ab"))...)
	reply = append(append(reply, chunk(bytes.Repeat([]byte("x"), 300))...), chunk(nil)...)
	reply = append(reply, whole([]byte("cde")).pieces[0]...)
	for cut := 1; cut < len(reply); cut++ {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			for _, piece := range [][]byte{reply[:cut], reply[cut:]} {
				if _, err := theirs.Write(piece); err != nil {
					return // the reader has failed and says so
				}
			}
		}()
		in := newMessages(ours)
		first, err := in.next(true)
		if err != nil || string(first.body) != "ab"+strings.Repeat("x", 300) || first.bytes != 302 || first.first.IsZero() {
			t.Fatalf("cut at %d: %+v, %v", cut, first, err)
		}
		second, err := in.next(true)
		if err != nil || string(second.body) != "cde" || !strings.HasPrefix(second.line, "HTTP/1.1 200") {
			t.Fatalf("cut at %d: %+v, %v", cut, second, err)
		}
		ours.Close()
	}
}
