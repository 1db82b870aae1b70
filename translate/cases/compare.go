package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Outcome is what happened when a level ran a case.
type Outcome struct {
	Status    int
	Header    Header // of the answer; nil at the core level
	Body      []byte
	Downloads []Sent // requests that reached image servers
	Upstream  []Sent // requests that reached the upstream, in order
	Usage     []byte // the recorded line, without line feed; nil when the level cannot see it
}

// Sent is a request that reached the upstream, or an image server. The core knows no
// method and path upstream, and of the headers only x-ezat-session, and for images
// authority and x-image-scheme.
type Sent struct {
	Method, Path string
	Header       Header
	Body         []byte
}

// Compare says what differs between the outcome at a level and what the case wants;
// nothing when all fits.
func (c *Case) Compare(level Level, o Outcome) []string {
	d := &differences{level: level}
	if len(o.Upstream) != len(c.Calls) {
		d.addf("the upstream was called %d times, want %d", len(o.Upstream), len(c.Calls))
	}
	for i := range min(len(o.Upstream), len(c.Calls)) {
		d.upstream(i, c.Calls[i].Want, o.Upstream[i])
	}
	d.downloads(c.Downloads, o.Downloads)
	d.client(c, o)
	d.usage(c, o)
	return d.list
}

type differences struct {
	level Level
	list  []string
}

func (d *differences) addf(format string, args ...any) {
	d.list = append(d.list, fmt.Sprintf(format, args...))
}

func (d *differences) upstream(i int, want Wanted, got Sent) {
	what := "upstream request"
	if i > 0 {
		what += " " + strconv.Itoa(i+1)
	}
	d.body(what, want, got.Body)
	if d.level == Core {
		if value, ok := want.Must.Get("x-ezat-session"); ok {
			d.headers(what, Header{{"x-ezat-session", value}}, nil, got.Header)
		} else if value, has := got.Header.Get("x-ezat-session"); has {
			d.addf("%s: x-ezat-session: %q, want none", what, value)
		}
		return
	}
	if want.Method != "" && (got.Method != want.Method || got.Path != want.Path) {
		d.addf("%s: %s %s, want %s %s", what, got.Method, got.Path, want.Method, want.Path)
	}
	if want.Method == "" && (got.Method != "POST" || got.Path != "/v1/messages") {
		d.addf("%s: %s %s, want POST /v1/messages", what, got.Method, got.Path)
	}
	d.headers(what, want.Must, want.MustNot, got.Header)
	if want.Kind != Raw {
		d.upstreamHouse(what, want, got)
	}
}

// upstreamHouse checks what holds for every translated request (operator's page,
// "Headers"), unless the case says something else of the same header.
func (d *differences) upstreamHouse(what string, want Wanted, got Sent) {
	must := Header{{"x-api-key", Key}, {"anthropic-version", "2023-06-01"}}
	if got.Method == "POST" {
		must = append(must, [2]string{"content-type", "application/json"})
	}
	for _, f := range must {
		if !want.mentions(f[0]) {
			d.headers(what, Header{f}, nil, got.Header)
		}
	}
	for _, f := range got.Header {
		name := strings.ToLower(f[0])
		if want.mentions(name) {
			continue
		}
		switch {
		case name == "accept-encoding" && f[1] != "identity",
			name == "content-length" && f[1] != strconv.Itoa(len(got.Body)) && got.Method == "POST",
			name == "authorization", name == "cookie",
			strings.HasPrefix(name, "openai-"), strings.HasPrefix(name, "x-stainless-"), strings.HasPrefix(name, "x-ezat-"):
			d.addf("%s: header %s: %s may not go up", what, name, f[1])
		}
	}
}

func (w *Wanted) mentions(name string) bool {
	if _, ok := w.Must.Get(name); ok {
		return true
	}
	for _, n := range w.MustNot {
		if n == name {
			return true
		}
	}
	return false
}

func (d *differences) headers(what string, must Header, mustNot []string, got Header) {
	for _, f := range must {
		value, ok := got.Get(f[0])
		switch {
		case !ok:
			d.addf("%s: header %s is missing", what, f[0])
		case f[1] != "*" && value != f[1]:
			d.addf("%s: header %s: %q, want %q", what, f[0], value, f[1])
		}
	}
	for _, name := range mustNot {
		if value, ok := got.Get(name); ok {
			d.addf("%s: header %s: %q, want none", what, name, value)
		}
	}
}

func (d *differences) client(c *Case, o Outcome) {
	want := c.Client
	if o.Status != want.Status {
		d.addf("status %d, want %d", o.Status, want.Status)
	}
	if id, ok := o.Header.Get("request-id"); ok {
		want.Body = bytes.ReplaceAll(want.Body, []byte("$REQUEST_ID"), []byte(id))
	}
	got := o.Body
	if d.level == Envoy {
		got = d.settleCreated(got)
	}
	d.body("answer", want, got)
	if d.level == Core {
		return
	}
	d.headers("answer", want.Must, want.MustNot, o.Header)
	if want.Kind == JSON || want.Kind == SSE {
		d.clientHouse(want, o)
	}
}

// clientHouse checks what holds for every translated answer (operator's page,
// "Headers").
func (d *differences) clientHouse(want Wanted, o Outcome) {
	id, ok := o.Header.Get("request-id")
	if !ok && !want.mentions("request-id") {
		d.addf("answer: no request-id")
	}
	if x, _ := o.Header.Get("x-request-id"); x != id {
		d.addf("answer: x-request-id %q differs from request-id %q", x, id)
	}
	contentType, _ := o.Header.Get("content-type")
	wantType := "application/json"
	if want.Kind == SSE {
		wantType = "text/event-stream"
	}
	if base, _, _ := strings.Cut(contentType, ";"); base != wantType && !want.mentions("content-type") {
		d.addf("answer: content-type %q, want %s", contentType, wantType)
	}
	if n, ok := o.Header.Get("content-length"); ok && n != strconv.Itoa(len(o.Body)) {
		d.addf("answer: content-length %s for a body of %d bytes", n, len(o.Body))
	}
	for _, name := range []string{"anthropic-organization-id", "anthropic-workspace-id"} {
		if value, ok := o.Header.Get(name); ok && !want.mentions(name) {
			d.addf("answer: header %s: %s reaches the client", name, value)
		}
	}
}

var createdField = regexp.MustCompile(`("object":"chat\.completion(?:\.chunk)?","created":)([0-9]+)`)

// settleCreated puts Created in the place of a plausible time, so that the rest of
// the answer can be compared as bytes.
func (d *differences) settleCreated(body []byte) []byte {
	now := time.Now().Unix()
	first := ""
	return createdField.ReplaceAllFunc(body, func(m []byte) []byte {
		parts := createdField.FindSubmatch(m)
		text := string(parts[2])
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil || at < now-3600 || at > now+60 {
			d.addf("created %s is not a plausible time", text)
			return m
		}
		if first == "" {
			first = text
		}
		if text != first {
			d.addf("created is %s in one chunk and %s in another", first, text)
		}
		return append(parts[1], strconv.Itoa(Created)...)
	})
}

// body compares a wanted body with the one that came.
func (d *differences) body(what string, want Wanted, got []byte) {
	switch want.Kind {
	case AnyBody:
	case JSON:
		d.json(what, want.Body, got)
	case SSE, Raw:
		if unfilled.Match(want.Body) {
			d.addf("%s: a message is not filled in yet; it came as\n%s", what, got)
			return
		}
		if !bytes.Equal(got, want.Body) {
			d.addf("%s differs\n%s", what, firstDifference(want.Body, got))
		}
	}
}

// unfilled finds a promise about the beginning of a message that nobody has filled in.
var unfilled = regexp.MustCompile(`"message": ?"((?:[^"\\]|\\.)*)\$REST"`)

func (d *differences) json(what string, want, got []byte) {
	if unfilled.Match(want) {
		d.addf("%s: a message is not filled in yet; it came as\n%s", what, got)
		return
	}
	compactGot, err := compact(got)
	if err != nil {
		d.addf("%s is not JSON (%v): %q", what, err, got)
		return
	}
	compactWant, err := compact(want)
	if err != nil {
		d.addf("%s: the case does not hold JSON: %v", what, err)
		return
	}
	if !bytes.Equal(compactGot, compactWant) {
		d.addf("%s differs\n%s", what, firstDifference(compactWant, compactGot))
	}
}

func compact(text []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// firstDifference shows both texts around the first byte in which they differ.
func firstDifference(want, got []byte) string {
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	return fmt.Sprintf("  at byte %d\n  got  %s\n  want %s", at, around(got, at), around(want, at))
}

func around(text []byte, at int) string {
	const before, after = 60, 160
	from, to := max(0, at-before), min(len(text), at+after)
	out := strconv.Quote(string(text[from:to]))
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

func (d *differences) usage(c *Case, o Outcome) {
	if c.Usage == nil {
		return
	}
	if o.Usage == nil {
		// The core writes no line for a request that never got an answer of its own.
		if d.level != Core || c.Client.Status == 200 {
			d.addf("no usage was recorded, want %s", c.Usage)
		}
		return
	}
	d.json("recorded usage", c.Usage, o.Usage)
}
