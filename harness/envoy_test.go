package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ezat.io/chat-completions/harness/internal/play"
	"ezat.io/chat-completions/harness/internal/testguest"
)

// scriptGuest builds the script guest once, scriptGuest021 the same for ABI 0.2.1.
var (
	scriptGuest    = sync.OnceValues(func() ([]byte, error) { return buildScript() })
	scriptGuest021 = sync.OnceValues(func() ([]byte, error) { return buildScript("abi021") })
)

func buildScript(tags ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "harness")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path, err := testguest.Build(dir, "script", tags...)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// TestLikeEnvoy plays every play that was recorded on a real Envoy, and wants
// the same transcript.
func TestLikeEnvoy(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plays: %v", err)
	}
	for _, file := range files {
		c, err := play.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if c.Transcript == "" {
				t.Fatal("not recorded yet: run harness/internal/play/record")
			}
			got, err := perform(t, c)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.Transcript {
				t.Errorf("%s\ngot\n%s\nwant\n%s\nfirst difference:\n%s", c.Comment, got, c.Transcript, firstDifference(got, c.Transcript))
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := "(nothing)", "(nothing)"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\n got %s\nwant %s", i+1, a, b)
		}
	}
	return ""
}

// actor plays the steps of a case on the harness.
type actor struct {
	h          *Host
	clock      *FakeClock
	transcript *play.Transcript
	streams    map[string]*Stream
	order      []string
	unread     []play.Step         // what a blocked client has sent
	bodies     map[string]*framing // by "a" and "a up"
	shown      map[string]int      // how much of a side is in the transcript
	callouts   map[uint32]bool
	logged     int
}

// framing is how a body is framed on the wire.
type framing struct {
	chunked bool
	left    int
}

func perform(t *testing.T, c *play.Case) (string, error) {
	build := scriptGuest
	if c.Options.ABI021 {
		build = scriptGuest021
	}
	module, err := build()
	if err != nil {
		return "", err
	}
	a := &actor{
		clock: NewFakeClock(), transcript: play.NewTranscript(), streams: map[string]*Stream{},
		bodies: map[string]*framing{}, shown: map[string]int{}, callouts: map[uint32]bool{},
	}
	a.h, err = New(t.Context(), module, a.config(c))
	if err != nil {
		return "", err
	}
	t.Cleanup(func() {
		if err := a.h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	a.look()
	a.transcript.Start()
	for _, step := range c.Steps {
		if err := a.do(step); err != nil {
			return "", fmt.Errorf("%s: %w", step.Line, err)
		}
		for unread := a.unread; len(unread) > 0 && !a.streams[unread[0].Who].RequestBlocked(); unread = a.unread {
			a.unread = unread[1:]
			if err := a.do(unread[0]); err != nil {
				return "", fmt.Errorf("%s: %w", unread[0].Line, err)
			}
		}
		a.look()
		a.transcript.Step(step.Line)
	}
	return a.transcript.String(), nil
}

// config is what record's Envoy has.
func (a *actor) config(c *play.Case) Config {
	timeout := time.Duration(c.Options.RouteTimeoutMs) * time.Millisecond
	config := Config{
		PluginConfig: c.Script, PluginName: "p", RootID: "r", VMID: "v",
		Environment: []string{"COLOUR=green"}, GoWASI: true,
		NoHeadersStopIteration: c.Options.NoStopIteration,
		BufferBytesMax:         int(c.Options.BufferLimitBytes),
		StreamIdleTimeout:      time.Duration(c.Options.IdleTimeoutMs) * time.Millisecond,
		Clock:                  a.clock,
		VirtualHost:            "any",
		Clusters: map[string]Cluster{
			"up": {Address: "127.0.0.1:5001"}, "callout": {}, "dead": {Refuses: true, Address: "127.0.0.1:1"}, "empty": {Empty: true},
		},
		Routes: []Route{
			{Prefix: "/none", DirectStatus: 404},
			{Prefix: "/dead", Cluster: "dead", Timeout: timeout},
			{Prefix: "/absent", Cluster: "absent"},
			{Prefix: "/empty", Cluster: "empty"},
			{Name: "moved", Prefix: "/moved", Cluster: "up", PrefixRewrite: "/other"},
			{Name: "all", Cluster: "up", Timeout: timeout, Match: func(h Headers) bool {
				p := h.Get(":path")
				return len(p) > 1 && p[0] == '/' && p[1] != '!'
			}},
		},
		AccessLog: func(x Access) {
			state, ok := x.FilterState["wasm.usage"]
			if !ok {
				state = "-"
			}
			a.transcript.Line("log", fmt.Sprintf("%s %d %s %s", a.order[len(a.order)-1], x.Status, x.Details, state))
		},
	}
	if config.StreamIdleTimeout == 0 {
		config.StreamIdleTimeout = -1
	}
	if c.Options.FailClosed {
		config.FailurePolicy = FailClosed
	}
	return config
}

// do plays a step as HTTP/1 would bring it.
func (a *actor) do(step play.Step) error {
	switch step.Who {
	case "wait":
		ms, err := strconv.Atoi(step.What)
		a.clock.Advance(time.Duration(ms) * time.Millisecond)
		return err
	case "callout":
		return a.answerCallout(step)
	}
	s := a.streams[step.Who]
	if s == nil {
		s = a.h.NewStream()
		a.streams[step.Who] = s
	}
	if s.RequestBlocked() && !strings.HasPrefix(step.What, "up") {
		a.unread = append(a.unread, step) // stays in the socket
		return nil
	}
	// The access log names the stream that the step is about.
	a.order = append(a.order, step.Who)
	switch step.What {
	case "request":
		return a.request(s, step)
	case "leave":
		s.ClientLeaves()
		return nil
	case "up":
		return a.respond(s, step)
	case "upreset":
		if f := a.bodies[step.Who+" up"]; f != nil && !f.chunked && f.left < 0 {
			return s.ResponseBody(nil, true) // a body that ends with its connection
		}
		return s.UpstreamFails(ResetTermination)
	}
	if what, ok := strings.CutPrefix(step.What, "up"); ok {
		return a.write(what, step.Words, a.bodies[step.Who+" up"], s.ResponseBody, s.ResponseTrailers)
	}
	return a.write(step.What, step.Words, a.bodies[step.Who], s.RequestBody, s.RequestTrailers)
}

func (a *actor) request(s *Stream, step play.Step) error {
	pairs, chunked := play.Head(step.Words[2:])
	h := NewHeaders(":authority", "test", ":path", step.Words[1], ":method", step.Words[0], ":scheme", "http", "x-stream", step.Who)
	f := &framing{chunked: chunked}
	for _, p := range pairs {
		h.Add(p[0], p[1])
	}
	f.left, _ = strconv.Atoi(h.Get("content-length"))
	a.bodies[step.Who] = f
	return s.RequestHeaders(h, !chunked && f.left == 0)
}

func (a *actor) respond(s *Stream, step play.Step) error {
	pairs, chunked := play.Head(step.Words[1:])
	h := NewHeaders(":status", step.Words[0])
	f := &framing{chunked: chunked, left: -1}
	for _, p := range pairs {
		switch p[0] {
		case "connection":
		case "content-length":
			var err error
			if f.left, err = strconv.Atoi(p[1]); err != nil {
				return err
			}
			fallthrough
		default:
			h.Add(p[0], p[1])
		}
	}
	if chunked {
		h.Add("transfer-encoding", "chunked")
	}
	a.bodies[step.Who+" up"] = f
	bodiless := f.left == 0 || step.Words[0] == "204" || step.Words[0] == "304" || s.Upstream().Headers.Get(":method") == "HEAD"
	return s.ResponseHeaders(h, !chunked && bodiless)
}

// write plays a piece of a body, or its end, which HTTP/1 tells on its own.
func (a *actor) write(what string, words []string, f *framing, body func([]byte, bool) error, trailers func(Headers) error) error {
	switch what {
	case "send":
		data := []byte(strings.Join(words, " "))
		if err := body(data, false); err != nil || f.chunked || f.left < 0 {
			return err
		}
		if f.left -= len(data); f.left == 0 {
			return body(nil, true)
		}
		return nil
	case "end":
		return body(nil, true)
	case "trailers":
		pairs, _ := play.Head(words)
		var h Headers
		for _, p := range pairs {
			h.Add(p[0], p[1])
		}
		return trailers(h)
	}
	return errors.New("unknown step")
}

func (a *actor) answerCallout(step play.Step) error {
	var oldest *Callout
	for _, c := range a.h.Callouts() {
		if a.callouts[c.ID] && oldest == nil {
			oldest = c
		}
	}
	if oldest == nil {
		return errors.New("no callout waits")
	}
	// What follows belongs to the stream that made the call.
	switch step.What {
	case "reset":
		oldest.Refuse()
	case "cut":
		oldest.Cut()
	default:
		pairs, _ := play.Head(step.Words[1:])
		h := NewHeaders(":status", step.What)
		for _, p := range pairs {
			h.Add(p[0], p[1])
		}
		h.Add("content-length", strconv.Itoa(len(step.Words[0])))
		oldest.Respond(Message{Headers: h, Body: []byte(step.Words[0])})
	}
	return nil
}

// look notes what each side has seen since the last step.
func (a *actor) look() {
	lines := a.h.Log()
	for _, l := range lines[a.logged:] {
		if !strings.HasPrefix(l.Message, "harness: ") {
			a.transcript.Guest(l.Message)
		}
	}
	a.logged = len(lines)
	for name, s := range a.streams {
		a.side(name+" up", s.Upstream(), true)
		a.side(name+" client", s.Client(), false)
	}
	for _, c := range a.h.Callouts() {
		if !a.callouts[c.ID] && c.Cluster == "callout" {
			a.callouts[c.ID] = true
			a.transcript.Head("callout up", c.Headers.Get(":method")+" "+c.Headers.Get(":path"), a.wire(c.Headers))
			a.transcript.Body("callout up", c.Body)
		}
	}
}

// wire is a map as it shows on the wire.
func (a *actor) wire(h Headers) [][2]string {
	var out [][2]string
	for _, f := range h {
		if f.Name == ":authority" {
			f.Name = "host"
		}
		if !strings.HasPrefix(f.Name, ":") {
			out = append(out, [2]string{f.Name, f.Value})
		}
	}
	return out
}

// side notes the news of one side as HTTP/1 carries it.
func (a *actor) side(who string, m Message, request bool) {
	const began, ended = 1 << 40, 1 << 41
	seen := a.shown[who]
	if !m.Began {
		if m.Reset && seen&ended == 0 && !request {
			a.transcript.Line(who, "connection closed")
			seen |= ended
		}
		a.shown[who] = seen
		return
	}
	if seen&began == 0 {
		start, h := m.Headers.Get(":status"), a.wire(m.Headers)
		_, sized := m.Headers.Lookup("content-length")
		if request {
			start = m.Headers.Get(":method") + " " + m.Headers.Get(":path")
			if _, ok := m.Headers.Lookup(":authority"); !ok {
				h = append(h, [2]string{"host", ""})
			}
			if m.bare && !sized && !strings.HasPrefix(start, "GET") && !strings.HasPrefix(start, "HEAD") {
				h = append(h, [2]string{"content-length", "0"})
			}
		} else if m.bare && !sized && start != "204" && start != "304" {
			h = append(h, [2]string{"content-length", "0"})
		}
		a.transcript.Head(who, start, h)
		seen |= began
	}
	n := seen &^ (began | ended)
	a.transcript.Body(who, m.Body[n:])
	seen = seen - n + len(m.Body)
	if seen&ended == 0 && (m.Ended || m.Reset) {
		if m.Ended {
			trailers := a.wire(m.Trailers)
			slices.SortStableFunc(trailers, func(x, y [2]string) int { return strings.Compare(x[0], y[0]) })
			for _, h := range trailers {
				a.transcript.Line(who, "trailer "+h[0]+": "+h[1])
			}
			a.transcript.Line(who, "end")
		} else {
			a.transcript.Line(who, "cut")
		}
		seen |= ended
	}
	a.shown[who] = seen
}
