package play

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Transcript collects what is seen after each step. Within a step the guest's
// lines come first, then what the upstream got, then what the client got, then
// the access log: the order between them is not fixed in a proxy.
type Transcript struct {
	text  strings.Builder
	guest []string
	seen  map[string]*peer

	panicked bool // in this step
}

// peer is one side of one stream.
type peer struct {
	lines []string
	body  []byte
}

// NewTranscript returns an empty transcript.
func NewTranscript() *Transcript { return &Transcript{seen: map[string]*peer{}} }

// Guest adds a line of the guest's log.
// Of a panic only the fact is kept: its trace differs from build to build, and
// the VM says nothing more.
func (t *Transcript) Guest(line string) {
	if t.panicked {
		return
	}
	if strings.HasPrefix(line, "panic: ") {
		t.panicked, line = true, "panics"
	}
	line = ports.ReplaceAllString(line, "127.0.0.1:PORT")
	t.guest = append(t.guest, added.ReplaceAllString(line, ""))
}

var (
	// ports finds addresses, whose ports differ from run to run.
	ports = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	// added finds headers that Envoy adds to responses.
	added = regexp.MustCompile(` date \w+, \d+ \w+ \d+ [0-9:]+ GMT| x-envoy-upstream-service-time \d+`)
)

// Start closes what was seen while the host started. It starts several VMs,
// how many is its own affair: each line shows once.
func (t *Transcript) Start() {
	slices.Sort(t.guest)
	t.guest = slices.Compact(t.guest)
	t.Step("start")
}

func (t *Transcript) peer(who string) *peer {
	p := t.seen[who]
	if p == nil {
		p = &peer{}
		t.seen[who] = p
	}
	return p
}

// Line adds something that a side saw. who is "a up", "a client" or "log".
func (t *Transcript) Line(who, line string) {
	p := t.peer(who)
	p.flush()
	p.lines = append(p.lines, line)
}

// Head adds the start line and headers that a side saw, without those that
// only say how the body is framed or that Envoy adds to all messages.
func (t *Transcript) Head(who, start string, headers [][2]string) {
	var kept []string
	for _, h := range headers {
		switch name := strings.ToLower(h[0]); {
		case name == "transfer-encoding", name == "connection", name == "date", name == "server",
			name == "x-forwarded-proto", name == "x-request-id", name == "x-stream",
			strings.HasPrefix(name, "x-envoy-"), strings.HasPrefix(name, ":"):
		default:
			kept = append(kept, name+": "+h[1])
		}
	}
	sort.Strings(kept)
	t.Line(who, start)
	for _, h := range kept {
		t.Line(who, "  "+h)
	}
}

// Body adds bytes that a side saw. Where they were cut does not show.
func (t *Transcript) Body(who string, data []byte) {
	p := t.peer(who)
	p.body = append(p.body, data...)
}

func (p *peer) flush() {
	if len(p.body) > 0 {
		p.lines = append(p.lines, "+"+brief(string(p.body)))
		p.body = nil
	}
}

// brief keeps a line short; the length and both ends still show.
func brief(s string) string {
	if len(s) > 64 {
		s = s[:30] + "…" + strconv.Itoa(len(s)) + "…" + s[len(s)-30:]
	}
	return strconv.Quote(s)
}

// Step closes what was seen after a step.
func (t *Transcript) Step(line string) {
	fmt.Fprintf(&t.text, "> %s\n", line)
	for _, g := range t.guest {
		fmt.Fprintf(&t.text, "  guest %s\n", g)
	}
	t.guest, t.panicked = nil, false
	var names []string
	for name, p := range t.seen {
		p.flush()
		if len(p.lines) > 0 {
			names = append(names, name)
		}
	}
	sort.Slice(names, func(i, j int) bool { return rank(names[i]) < rank(names[j]) })
	for _, name := range names {
		for _, l := range t.seen[name].lines {
			fmt.Fprintf(&t.text, "  %s %s\n", name, l)
		}
		t.seen[name].lines = nil
	}
}

// rank orders upstream before client before log, and streams by name.
func rank(who string) string {
	switch {
	case strings.HasSuffix(who, " up"):
		return "1" + who
	case strings.HasSuffix(who, " client"):
		return "2" + who
	}
	return "3" + who
}

func (t *Transcript) String() string { return t.text.String() }
