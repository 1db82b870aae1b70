package harness

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// get opens a stream and sends a request without a body.
func get(t testing.TB, h *Host, path string) *Stream {
	t.Helper()
	s := h.NewStream()
	want(t, s.RequestHeaders(NewHeaders(":authority", "test", ":path", path, ":method", "GET", ":scheme", "http"), true))
	return s
}

// post opens a stream and sends the head of a request with a body.
func post(t testing.TB, h *Host, path string) *Stream {
	t.Helper()
	s := h.NewStream()
	want(t, s.RequestHeaders(NewHeaders(":authority", "test", ":path", path, ":method", "POST", ":scheme", "http"), false))
	return s
}

func want(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// messages are the guest's lines, without those of the host.
func messages(h *Host) []string {
	var out []string
	for _, l := range h.Log() {
		if !strings.HasPrefix(l.Message, "harness: ") {
			out = append(out, l.Message)
		}
	}
	return out
}

// wantLine wants a line in the guest's log.
func wantLine(t *testing.T, h *Host, line string) {
	t.Helper()
	if !slices.Contains(messages(h), line) {
		t.Errorf("the guest has not logged %q but\n%s", line, strings.Join(messages(h), "\n"))
	}
}

func wantStatus(t *testing.T, s *Stream, status string) {
	t.Helper()
	if got := s.Client().Headers.Get(":status"); got != status {
		t.Errorf("the client got status %q, want %q (%s)", got, status, s.Details())
	}
}

// TestFailingGuests has guests fail in every way: the stream ends with a 503, the
// host says why, and the next request finds a new VM.
func TestFailingGuests(t *testing.T) {
	for name, test := range map[string]struct {
		op     string
		change func(*Config)
		says   string
	}{
		"panic":           {"panic gone", nil, "unreachable"},
		"never returns":   {"spin", func(c *Config) { c.CallTimeout = 200 * time.Millisecond }, "deadline exceeded"},
		"out of memory":   {"oom", func(c *Config) { c.MemoryBytesMax = 64 << 20 }, "proxy_on_request_headers"},
		"endless descent": {"recurse", func(c *Config) { c.MemoryBytesMax = 12 << 20 }, "proxy_on_request_headers"},
	} {
		t.Run(name, func(t *testing.T) {
			h := scriptHost(t, "request_headers@/bad: "+test.op, test.change)
			s := get(t, h, "/bad")
			wantStatus(t, s, "503")
			if m := s.Client(); !m.Ended || len(m.Body) > 0 || s.Details() != "wasm_fail_stream" {
				t.Errorf("client %+v, details %s", m, s.Details())
			}
			said := false
			for _, l := range h.Log() {
				said = said || l.Level == Critical && strings.Contains(l.Message, test.says)
			}
			if !said {
				t.Errorf("no line says %q: %v", test.says, h.Log())
			}
			if got := get(t, h, "/good").Upstream(); !got.Ended {
				t.Errorf("the next request: %+v", got)
			}
		})
	}
}

// TestReloadBackoff shows that a VM that fails again and again is not loaded
// again before the backoff has passed.
func TestReloadBackoff(t *testing.T) {
	clock := NewFakeClock()
	h := scriptHost(t, "request_headers@/bad: panic gone", func(c *Config) {
		c.Clock, c.ReloadBackoff = clock, time.Second
	})
	wantStatus(t, get(t, h, "/bad"), "503")
	wantStatus(t, get(t, h, "/good"), "503")
	clock.Advance(time.Second)
	if s := get(t, h, "/good"); !s.Upstream().Ended {
		t.Error("not loaded after the backoff")
	}
}

// TestCallTimeoutOff shows that a call without a deadline is not bounded by one.
func TestCallTimeoutOff(t *testing.T) {
	h := scriptHost(t, "", func(c *Config) { c.CallTimeout = -1 })
	if s := get(t, h, "/"); !s.Upstream().Ended {
		t.Error("the request has not gone upstream")
	}
}

// TestTicks shows ticks on the host's clock, on each VM that asks for them, the
// one of Envoy's main thread among them.
func TestTicks(t *testing.T) {
	clock := NewFakeClock()
	h := scriptHost(t, "configure: tick 100\ntick#3: tick 0", func(c *Config) {
		c.Clock, c.MainThread = clock, true
	})
	count := func(worker int) int {
		n := 0
		for _, l := range h.Log() {
			if l.Worker == worker && l.Message == "tick" {
				n++
			}
		}
		return n
	}
	clock.Advance(99 * time.Millisecond)
	if n := count(0); n != 0 {
		t.Fatalf("%d ticks too early", n)
	}
	clock.Advance(102 * time.Millisecond)
	if a, b := count(0), count(1); a != 2 || b != 2 {
		t.Fatalf("%d and %d ticks after 201 ms, want 2 on both", a, b)
	}
	clock.Advance(time.Hour)
	if a, b := count(0), count(1); a != 3 || b != 3 {
		t.Errorf("%d and %d ticks, want 3: the third turns them off", a, b)
	}
}

// TestShutdown shows the end of a plugin context, at once and put off.
func TestShutdown(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"at once":                {"", []string{"done", "delete"}},
		"refused":                {"done: pause", []string{"done"}},
		"finished while it asks": {"done: finished; pause", []string{"done", "finished 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			h, err := New(t.Context(), guestModule(t), Config{GoWASI: true, PluginConfig: test.script, Log: func(l LogLine) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, l.Message)
			}})
			want(t, err)
			want(t, h.Close(t.Context()))
			mu.Lock()
			defer mu.Unlock()
			if got = got[1:]; !slices.Equal(got, test.want) { // the first is "configure"
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestMetricsAreRead shows a guest's metrics to the embedder. Workers share them.
func TestMetricsAreRead(t *testing.T) {
	h := scriptHost(t, `request_headers: metric define 0 requests; metric increment requests 1; metric define 1 level; metric record level 7; metric define 2 size; metric record size 3; metric record size 5`,
		func(c *Config) { c.Workers = 2 })
	get(t, h, "/")
	get(t, h, "/")
	got := fmt.Sprintf("%+v", h.Metrics())
	if want := "[{Name:level Kind:1 Value:7 Count:0 Samples:[]} {Name:requests Kind:0 Value:2 Count:0 Samples:[]} {Name:size Kind:2 Value:16 Count:4 Samples:[3 5 3 5]}]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if m, ok := h.Metric("requests"); !ok || m.Value != 2 {
		t.Errorf("requests: %+v", m)
	}
	if _, ok := h.Metric("nothing"); ok {
		t.Error("a metric that nobody defined")
	}
}

// TestFilterStateAndAccessLog shows what the embedder learns of a stream.
func TestFilterStateAndAccessLog(t *testing.T) {
	var lines []Access
	clock := NewFakeClock()
	h := scriptHost(t, "request_headers: setproperty usage one; map 0 set :path /rewritten\nlog: setproperty usage two", func(c *Config) {
		c.Clock, c.AccessLog = clock, func(a Access) { lines = append(lines, a) }
	})
	s := post(t, h, "/asked?x")
	want(t, s.RequestBody([]byte("hello"), true))
	if v, ok := s.FilterState("wasm.usage"); !ok || v != "one" {
		t.Errorf("filter state %q %v", v, ok)
	}
	clock.Advance(time.Second)
	want(t, s.ResponseHeaders(NewHeaders(":status", "201"), false))
	want(t, s.ResponseBody([]byte("yes"), true))
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	got := fmt.Sprintf("%+v", lines[0])
	if want := "{Method:POST Path:/asked?x Authority:test Status:201 Details:via_upstream FilterState:map[wasm.usage:two] Duration:1s BytesReceived:5 BytesSent:3 Worker:0}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if p := s.Upstream().Headers.Get(":path"); p != "/rewritten" {
		t.Errorf("path %s", p)
	}
}

// TestSharedBetweenWorkers shows shared data and queues across VMs.
func TestSharedBetweenWorkers(t *testing.T) {
	h := scriptHost(t, "configure: queue register q\nrequest_headers@/set: shared set k v 0; queue resolve q \"\"; queue enqueue q item\nrequest_headers@/get: shared get k\nqueue_ready: queue dequeue q",
		func(c *Config) { c.Workers = 2 })
	// A queue belongs to the VM that registered it last.
	get(t, h, "/set")
	get(t, h, "/get")
	wantLine(t, h, `shared get k 0 "v" 1`)
	if v, ok := h.SharedData("k"); !ok || v != "v" {
		t.Errorf("shared data %q %v", v, ok)
	}
	deadline := time.Now().Add(10 * time.Second)
	for !slices.Contains(messages(h), `queue dequeue q 0 "item"`) {
		if time.Now().After(deadline) {
			t.Fatalf("nobody was told of the item: %q", messages(h))
		}
		time.Sleep(time.Millisecond)
	}
}

// TestCapabilities shows a guest with few rights: hostcalls that it does not have
// are refused and logged, callbacks not called.
func TestCapabilities(t *testing.T) {
	goNeeds := strings.Fields(`fd_write clock_time_get random_get environ_sizes_get environ_get args_sizes_get args_get
		proc_exit sched_yield poll_oneoff fd_close fd_fdstat_get fd_fdstat_set_flags fd_prestat_get fd_prestat_dir_name`)
	h := scriptHost(t, "request_headers: property request path; map 0 set x-a b", func(c *Config) {
		c.Capabilities = append(goNeeds, "proxy_log", "proxy_get_buffer_bytes", "proxy_get_header_map_value",
			"proxy_get_property", "proxy_on_context_create", "proxy_on_configure", "proxy_on_request_headers")
	})
	s := get(t, h, "/")
	wantLine(t, h, `property request.path 0 "/"`)
	wantLine(t, h, "map set x-a 10")
	if got := s.Upstream().Headers.Get("x-a"); got != "" {
		t.Errorf("x-a is %q", got)
	}
	want(t, s.ResponseHeaders(NewHeaders(":status", "200"), true))
	for _, m := range messages(h) {
		if strings.HasPrefix(m, "response_headers") || m == "log" {
			t.Errorf("%s was called", m)
		}
	}
	said := false
	for _, l := range h.Log() {
		said = said || strings.Contains(l.Message, "proxy_replace_header_map_value, which its capabilities do not have")
	}
	if !said {
		t.Error("the refusal is not logged")
	}
}

// TestForeignFunctions shows the embedder's own functions.
func TestForeignFunctions(t *testing.T) {
	h := scriptHost(t, `request_headers: foreign upper abc; foreign sometimes x`, func(c *Config) {
		c.ForeignFunctions = map[string]func([]byte) ([]byte, bool){
			"upper":     func(b []byte) ([]byte, bool) { return []byte(strings.ToUpper(string(b))), true },
			"sometimes": func([]byte) ([]byte, bool) { return nil, false },
		}
	})
	get(t, h, "/")
	wantLine(t, h, "foreign upper 0 ABC")
	wantLine(t, h, "foreign sometimes 1 ")
}

// TestLimits shows the bounds of what a guest can make the host keep.
func TestLimits(t *testing.T) {
	t.Run("waiting callouts", func(t *testing.T) {
		h := scriptHost(t, `request_headers: call callout 0 "" :method GET :path / :authority c`, func(c *Config) { c.CalloutsMax = 2 })
		for range 3 {
			get(t, h, "/")
		}
		if n := len(h.Callouts()); n != 2 {
			t.Errorf("%d callouts wait", n)
		}
		wantLine(t, h, "call callout 10")
		h.Callouts()[0].Respond(Message{Headers: NewHeaders(":status", "200")})
		get(t, h, "/")
		if n := len(h.Callouts()); n != 2 {
			t.Errorf("%d callouts wait after one was answered", n)
		}
	})
	t.Run("a callout's answer", func(t *testing.T) {
		h := scriptHost(t, `request_headers: call callout 0 "" :method GET :path / :authority c`, func(c *Config) { c.CalloutBytesMax = 10 })
		get(t, h, "/")
		get(t, h, "/")
		h.Callouts()[0].Respond(Message{Headers: NewHeaders(":status", "200"), Body: []byte("0123456789")})
		h.Callouts()[0].Respond(Message{Headers: NewHeaders(":status", "200"), Body: []byte("0123456789a")})
		wantLine(t, h, "http_call_response 0 10 0")
		wantLine(t, h, "http_call_response 1 0 0")
	})
	t.Run("headers of a guest", func(t *testing.T) {
		h := scriptHost(t, `request_headers: map 0 set x-big "x"*2000; map 0 add x-big "x"*2000; map 0 setall x-big "x"*4000`, func(c *Config) { c.HeaderBytesMax = 128 })
		get(t, h, "/")
		wantLine(t, h, "map set x-big 2")
		wantLine(t, h, "map add x-big 2")
		wantLine(t, h, "map setall 2")
	})
	t.Run("filter state", func(t *testing.T) {
		h := scriptHost(t, `request_headers: setproperty a "x"*600000; setproperty b "x"*600000; setproperty a small`, nil)
		s := get(t, h, "/")
		wantLine(t, h, "setproperty 10")
		if v, _ := s.FilterState("wasm.a"); v != "small" {
			t.Errorf("wasm.a has %d bytes", len(v))
		}
		if _, ok := s.FilterState("wasm.b"); ok {
			t.Error("wasm.b was kept")
		}
	})
	t.Run("shared data", func(t *testing.T) {
		h := scriptHost(t, `request_headers: shared set k "x"*40000000 0; shared set l "x"*40000000 0; shared set k "" 0; shared set l "x"*40000000 0`, nil)
		get(t, h, "/")
		var got []string
		for _, m := range messages(h) {
			if strings.HasPrefix(m, "shared") {
				got = append(got, m)
			}
		}
		if want := []string{"shared set k 0", "shared set l 10", "shared set k 0", "shared set l 0"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("metrics", func(t *testing.T) {
		h := scriptHost(t, `request_headers: metric define 0 "x"*2000`, nil)
		get(t, h, "/")
		if n := len(h.Metrics()); n != 0 {
			t.Errorf("%d metrics", n)
		}
	})
	t.Run("log lines", func(t *testing.T) {
		h := scriptHost(t, `request_headers: log "x"*100000`, nil)
		for range 3000 {
			s := get(t, h, "/")
			s.ClientLeaves()
			if len(h.Log()) >= logLinesMax {
				break
			}
		}
		get(t, h, "/")
		lines := h.Log()
		if len(lines) != logLinesMax || lines[len(lines)-1].Message == "" {
			t.Errorf("%d lines are kept", len(lines))
		}
		for _, l := range lines {
			if len(l.Message) > logLineBytesMax {
				t.Fatalf("a line of %d bytes", len(l.Message))
			}
		}
	})
}

// TestOrderOfParts shows that a test cannot play its part in the wrong order
// without being told.
func TestOrderOfParts(t *testing.T) {
	h := scriptHost(t, "request_headers@/held: pause", nil)
	s := h.NewStream()
	if err := s.RequestBody([]byte("x"), false); !errors.Is(err, ErrOrder) {
		t.Errorf("a body before headers: %v", err)
	}
	if err := s.ResponseHeaders(NewHeaders(":status", "200"), true); !errors.Is(err, ErrNotUpstream) {
		t.Errorf("a response before a request: %v", err)
	}
	s = get(t, h, "/")
	for name, err := range map[string]error{
		"headers twice":           s.RequestHeaders(NewHeaders(":path", "/"), true),
		"a body after the end":    s.RequestBody(nil, true),
		"trailers after the end":  s.RequestTrailers(NewHeaders("a", "b")),
		"a response body first":   s.ResponseBody(nil, true),
		"response trailers first": s.ResponseTrailers(nil),
	} {
		if !errors.Is(err, ErrOrder) {
			t.Errorf("%s: %v", name, err)
		}
	}
	want(t, s.ResponseHeaders(NewHeaders(":status", "200"), true))
	want(t, s.ResponseBody([]byte("late"), true)) // the stream is over: it goes nowhere
	if len(s.Client().Body) > 0 {
		t.Error("bytes after the end")
	}
	if err := get(t, h, "/held").ResponseHeaders(NewHeaders(":status", "200"), true); !errors.Is(err, ErrNotUpstream) {
		t.Errorf("a response to a held request: %v", err)
	}
}

// TestPiecesReachTheClient shows what has come out after each piece.
func TestPiecesReachTheClient(t *testing.T) {
	h := scriptHost(t, `response_body: buffer 1 set max 0 "|"`, nil)
	s := get(t, h, "/")
	want(t, s.ResponseHeaders(NewHeaders(":status", "200"), false))
	if m := s.Client(); !m.Began || m.Ended || len(m.Body) > 0 {
		t.Errorf("after the headers: %+v", m)
	}
	for _, piece := range []string{"one", "two"} {
		want(t, s.ResponseBody([]byte(piece), false))
		if got := string(s.TakeClient()); got != piece+"|" {
			t.Errorf("after %s the client got %q", piece, got)
		}
	}
	want(t, s.ResponseBody(nil, true))
	m := s.Client()
	if !m.Ended || string(m.Body) != "one|two||" || len(m.Pieces) != 3 {
		t.Errorf("at the end: %+v", m)
	}
	if !s.Over() {
		t.Error("the stream is not over")
	}
}

// TestEndWithData shows HTTP/2's way of ending: with the last piece.
func TestEndWithData(t *testing.T) {
	h := scriptHost(t, "", nil)
	s := post(t, h, "/")
	want(t, s.RequestBody([]byte("hello"), true))
	wantLine(t, h, "request_body 5 1")
	want(t, s.ResponseHeaders(NewHeaders(":status", "200"), false))
	want(t, s.ResponseBody([]byte("yes"), true))
	wantLine(t, h, "response_body 3 1")
	if m := s.Client(); !m.Ended || string(m.Body) != "yes" {
		t.Errorf("client %+v", m)
	}
}

// TestResumeWithoutPause shows that resuming what goes on is told, and harmless.
func TestResumeWithoutPause(t *testing.T) {
	h := scriptHost(t, "request_headers: resume 0; resume 1; resume 2; resume 3; resume 4", nil)
	s := get(t, h, "/")
	if !s.Upstream().Ended {
		t.Error("the request has not gone upstream")
	}
	for _, line := range []string{"resume 0 0", "resume 1 0", "resume 2 0", "resume 3 12", "resume 4 2"} {
		wantLine(t, h, line)
	}
	told := 0
	for _, l := range h.Log() {
		if strings.Contains(l.Message, "that it has not paused") {
			told++
		}
	}
	if told != 2 {
		t.Errorf("told %d times", told)
	}
}
