package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"
)

// Level is where a case runs.
type Level string

// The three levels, lowest first.
const (
	Core  Level = "core"  // package translate, called directly
	Wasm  Level = "wasm"  // the module in the harness
	Envoy Level = "envoy" // the module in Envoy, over HTTP
)

var allLevels = []Level{Core, Wasm, Envoy}

// Values that every level uses, so that one expectation fits all of them.
const (
	Created   = 1793318400   // Unix seconds of the fixed clock
	RequestID = "req_test01" // the upstream's request-id unless a case says otherwise
	Key       = "test-key"   // the client's key
)

// Case is one exchange: what the client sends, what must go up, what comes back,
// and what the client must get.
type Case struct {
	Name    string   // "tools/strict": the file's path without .txtar
	Comment string   // what the case shows
	Rules   []string // ids of rows.txt
	Levels  []Level
	Config  []byte   // plugin configuration, nil for the empty one
	Relax   []string // names of rules that a strict stand-in leaves out
	Cuts    []Cutting

	Request   Request
	Downloads []Call // what image servers are asked and answer, in any order
	Calls     []Call // what the upstream is asked and answers, in order; empty: it must not be called
	Client    Wanted // what the client must get
	Usage     []byte // the recorded line, nil when the case does not say

	archive *txtar.Archive
}

// Runs reports whether the case can be shown at the level.
func (c *Case) Runs(l Level) bool { return slices.Contains(c.Levels, l) }

// Request is what the client sends.
type Request struct {
	Method, Path string
	Header       Header
	Body         []byte
}

// Call is one request to the upstream and the upstream's answer to it.
type Call struct {
	Want   Wanted
	Answer Answer
}

// Answer is a scripted answer of the upstream.
type Answer struct {
	Status int
	Header Header
	Body   []byte
}

// Wanted is what a request upstream or an answer to the client must look like.
type Wanted struct {
	Method, Path string // of a request; empty: the default
	Status       int    // of an answer
	Must         Header // a value of "*" stands for any
	MustNot      []string
	Kind         Kind // how Body compares
	Body         []byte
	explicit     bool // the body stands in the case, it is not the package's default
}

// Kind says how bodies compare.
type Kind int

// The kinds of a wanted body.
const (
	AnyBody Kind = iota // not compared
	JSON                // compacted, then byte by byte
	SSE                 // byte by byte
	Raw                 // byte by byte
)

// Header is a list of fields in order, names in lower case.
type Header [][2]string

// Get returns the first value of the field and whether there is one.
func (h Header) Get(name string) (string, bool) {
	for _, f := range h {
		if strings.EqualFold(f[0], name) {
			return f[1], true
		}
	}
	return "", false
}

// Set replaces the fields of that name by one.
func (h Header) Set(name, value string) Header {
	return append(h.Del(name), [2]string{name, value})
}

// Del removes the fields of that name.
func (h Header) Del(name string) Header {
	return slices.DeleteFunc(slices.Clone(h), func(f [2]string) bool { return strings.EqualFold(f[0], name) })
}

var headerLine = regexp.MustCompile(`^(rule|levels|config|relax|cut):\s*(.*)$`)

// Parse reads one case. The name is its path without .txtar.
func Parse(name string, data []byte) (*Case, error) {
	c := &Case{Name: name, Levels: allLevels, archive: txtar.Parse(data)}
	if err := c.parseComment(string(c.archive.Comment)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s, err := newSections(c.archive)
	if err == nil {
		err = c.parseSections(s)
	}
	if err == nil {
		err = s.unused()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

func (c *Case) parseComment(text string) error {
	var about []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		m := headerLine.FindStringSubmatch(line)
		switch {
		case m != nil:
			if err := c.parseHeader(m[1], m[2]); err != nil {
				return fmt.Errorf("%s: %w", m[1], err)
			}
		case line != "" && len(c.Rules) > 0:
			return fmt.Errorf("unknown header line %q", line)
		case line != "":
			about = append(about, line)
		}
	}
	c.Comment = strings.Join(about, " ")
	if c.Comment == "" {
		return fmt.Errorf("no comment says what the case shows")
	}
	if len(c.Rules) == 0 {
		return fmt.Errorf("no rule: line names a row")
	}
	return nil
}

func (c *Case) parseHeader(key, value string) error {
	switch key {
	case "rule":
		c.Rules = append(c.Rules, strings.Fields(value)...)
	case "levels":
		names, why, found := strings.Cut(value, "(")
		if !found || !strings.HasSuffix(why, ")") || len(why) < 2 {
			return fmt.Errorf("the reason for fewer levels is missing")
		}
		c.Levels = nil
		for _, n := range strings.Fields(names) {
			if !slices.Contains(allLevels, Level(n)) {
				return fmt.Errorf("unknown level %q", n)
			}
			c.Levels = append(c.Levels, Level(n))
		}
		if len(c.Levels) == 0 {
			return fmt.Errorf("no level")
		}
	case "config":
		if !json.Valid([]byte(value)) {
			return fmt.Errorf("not JSON")
		}
		c.Config = []byte(value)
	case "relax":
		c.Relax = strings.Fields(value)
	case "cut":
		for _, w := range strings.Fields(value) {
			if !slices.Contains(allCuts, Cutting(w)) {
				return fmt.Errorf("unknown cut %q", w)
			}
			c.Cuts = append(c.Cuts, Cutting(w))
		}
	}
	return nil
}

func (c *Case) parseSections(s *sections) (err error) {
	if c.Request, err = s.request(); err != nil {
		return err
	}
	if c.Downloads, err = s.calls("download"); err != nil {
		return err
	}
	for _, call := range c.Downloads {
		if err := checkDownload(call); err != nil {
			return err
		}
	}
	if c.Calls, err = s.calls("upstream"); err != nil {
		return err
	}
	if c.Client, err = s.wanted("client"); err != nil {
		return err
	}
	if usage, _, ok := s.take("usage", ".json"); ok {
		c.Usage = usage
	}
	return c.fillDefaults()
}

// fillDefaults gives a call without a scripted answer the plain one, and a client
// whose answer the case leaves open the translation of the plain one.
func (c *Case) fillDefaults() error {
	if len(c.Calls) == 0 {
		if c.Client.Kind == AnyBody {
			return fmt.Errorf("the upstream is not called and no client section says what the client gets")
		}
		return nil
	}
	last := &c.Calls[len(c.Calls)-1]
	if last.Answer.Body != nil || last.Answer.Status != 200 {
		if c.Client.Kind == AnyBody {
			return fmt.Errorf("no client section says what the client gets")
		}
		return nil
	}
	return c.fillPlain(last)
}

// sections hands out the files of an archive and remembers which were asked for.
type sections struct {
	files map[string][]byte
	used  map[string]bool
}

func newSections(a *txtar.Archive) (*sections, error) {
	s := &sections{files: map[string][]byte{}, used: map[string]bool{}}
	for _, f := range a.Files {
		if _, twice := s.files[f.Name]; twice {
			return nil, fmt.Errorf("section %s: twice", f.Name)
		}
		s.files[f.Name] = f.Data
	}
	return s, nil
}

func (s *sections) unused() error {
	for name := range s.files {
		if !s.used[name] {
			return fmt.Errorf("section %s: unknown, or nothing asks for it", name)
		}
	}
	return nil
}

func (s *sections) hasPrefix(prefix string) bool {
	for name := range s.files {
		if name == prefix || strings.HasPrefix(name, prefix+".") {
			return true
		}
	}
	return false
}

// take returns the body section of that name with one of the endings, the bytes
// ready to be sent or compared.
func (s *sections) take(name string, endings ...string) (body []byte, ending string, ok bool) {
	for _, e := range endings {
		data, has := s.files[name+e]
		if !has {
			continue
		}
		if ok {
			break // a second body stays unused and is reported
		}
		s.used[name+e] = true
		body, ending, ok = data, e, true
		if e != ".sse" {
			body = bytes.TrimSuffix(data, []byte("\n"))
		}
	}
	return body, ending, ok
}

func (s *sections) request() (Request, error) {
	r := Request{Method: "POST", Path: "/openai/v1/chat/completions", Header: Header{
		{"authorization", "Bearer " + Key},
		{"content-type", "application/json"},
		{"x-ezat-cache", "off"},
	}}
	head, err := s.head("request")
	if err != nil {
		return r, err
	}
	if head.method != "" {
		r.Method, r.Path = head.method, head.path
	}
	for _, name := range head.not {
		r.Header = r.Header.Del(name)
	}
	for _, f := range head.header {
		r.Header = r.Header.Del(f[0])
	}
	r.Header = append(r.Header, head.header...)
	body, ending, _ := s.take("request", ".json", ".raw", ".quoted")
	r.Body, err = unquote(body, ending)
	return r, err
}

// calls are the calls of one name: NAME, NAME-2, NAME-3 and so on.
func (s *sections) calls(name string) (all []Call, err error) {
	for n := 1; ; n++ {
		prefix := name
		if n > 1 {
			prefix += "-" + strconv.Itoa(n)
		}
		if !s.hasPrefix(prefix + ".request") {
			return all, nil
		}
		call, err := s.call(prefix)
		if err != nil {
			return nil, err
		}
		all = append(all, call)
	}
}

func (s *sections) call(prefix string) (Call, error) {
	want, err := s.wanted(prefix + ".request")
	if err != nil {
		return Call{}, err
	}
	a := Answer{Status: 200}
	head, err := s.head(prefix)
	if err != nil {
		return Call{}, err
	}
	if head.status != 0 {
		a.Status = head.status
	}
	body, ending, ok := s.take(prefix, ".json", ".sse", ".raw", ".quoted")
	if ok {
		if a.Body, err = unquote(body, ending); err != nil {
			return Call{}, fmt.Errorf("section %s%s: %w", prefix, ending, err)
		}
		if a.Body == nil {
			a.Body = []byte{}
		}
	}
	switch ending {
	case ".json":
		a.Header = Header{{"content-type", "application/json"}}
	case ".sse":
		a.Header = Header{{"content-type", "text/event-stream; charset=utf-8"}}
	}
	a.Header = a.Header.Set("request-id", RequestID)
	for _, name := range head.not {
		a.Header = a.Header.Del(name)
	}
	for _, f := range head.header {
		a.Header = a.Header.Set(f[0], f[1])
	}
	return Call{Want: want, Answer: a}, nil
}

func (s *sections) wanted(name string) (Wanted, error) {
	w := Wanted{Status: 200}
	head, err := s.head(name)
	if err != nil {
		return w, err
	}
	w.Method, w.Path, w.Must, w.MustNot = head.method, head.path, head.header, head.not
	if head.status != 0 {
		w.Status = head.status
	}
	body, ending, ok := s.take(name, ".json", ".sse", ".raw")
	if !ok {
		return w, nil
	}
	w.Body, w.explicit = body, true
	switch ending {
	case ".json":
		w.Kind = JSON
		if !json.Valid(body) {
			return w, fmt.Errorf("section %s.json: not JSON", name)
		}
	case ".sse":
		w.Kind = SSE
	case ".raw":
		w.Kind = Raw
	}
	return w, nil
}

// head is a section of a first line and header fields.
type head struct {
	method, path string
	status       int
	header       Header
	not          []string
}

func (s *sections) head(name string) (h head, err error) {
	data, ok := s.files[name]
	if !ok {
		return h, nil
	}
	s.used[name] = true
	first := true
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		if err := h.line(line, first); err != nil {
			return h, fmt.Errorf("section %s: %w", name, err)
		}
		first = false
	}
	return h, nil
}

var (
	requestLine = regexp.MustCompile(`^([A-Z]+) (/\S*)$`)
	statusLine  = regexp.MustCompile(`^([1-5][0-9]{2})$`)
	fieldLine   = regexp.MustCompile(`^([a-z0-9-]+): (.*)$`)
	absentLine  = regexp.MustCompile(`^!([a-z0-9-]+)$`)
)

func (h *head) line(line string, first bool) error {
	if m := requestLine.FindStringSubmatch(line); m != nil && first {
		h.method, h.path = m[1], m[2]
		return nil
	}
	if m := statusLine.FindStringSubmatch(line); m != nil && first {
		h.status, _ = strconv.Atoi(m[1])
		return nil
	}
	if m := fieldLine.FindStringSubmatch(line); m != nil {
		h.header = append(h.header, [2]string{m[1], m[2]})
		return nil
	}
	if m := absentLine.FindStringSubmatch(line); m != nil {
		h.not = append(h.not, m[1])
		return nil
	}
	return fmt.Errorf("neither request line, status nor header: %q", line)
}

// unquote joins the Go string literals of a .quoted section; other bodies stand as
// they are.
func unquote(body []byte, ending string) ([]byte, error) {
	if ending != ".quoted" {
		return body, nil
	}
	var out []byte
	for line := range strings.Lines(string(body)) {
		text, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("not a Go string literal: %s", line)
		}
		out = append(out, text...)
	}
	return out, nil
}

// Forgives reports whether a strict stand-in's refusal of a call is no fault in this
// case: `relax: unknown_model` is about names that the stand-in's API lacks (404), and
// where the gateway has a key of its own none goes up here (401).
func (c *Case) Forgives(call, status int) bool {
	switch status {
	case 404:
		return slices.Contains(c.Relax, "unknown_model")
	case 401:
		return slices.Contains(c.Calls[call].Want.MustNot, "x-api-key")
	}
	return false
}

// HoldsHeaders reports whether headers wait for the body in the case's configuration.
func (c *Case) HoldsHeaders() bool {
	config := struct {
		HoldHeaders bool `json:"hold_headers"`
	}{HoldHeaders: true}
	return c.Config == nil || json.Unmarshal(c.Config, &config) == nil && config.HoldHeaders
}
