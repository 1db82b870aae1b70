package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ezat.io/chat-completions/e2e/envoy"
	"github.com/tidwall/gjson"
)

// The comparison with LiteLLM's proxy: the same work through both, and straight
// to the stand-in. `make bench-litellm` installs it (litellm.txt) and runs this.

const (
	addedSection   = "Added to a direct call, one connection"
	loadSection    = "8 connections, one worker each"
	processSection = "Memory of the whole process, behind all of it"

	// Each median is of a tenth of the exchanges that whole.go makes, because
	// LiteLLM takes many times as long, but of no fewer than these.
	contestPairsPart = 10
	contestPairsMin  = 15
)

// way is one way to the stand-in.
type way struct {
	name    string
	address string
	pid     int    // of the proxy; 0 where there is none
	prefix  string // of the OpenAI API's paths
	key     string
}

// The ways, in the order of contest.ways.
const (
	direct = iota
	ours
	rival
)

// spell gives the request, as post has made it, the way's path and key.
func (w *way) spell(request []byte) []byte {
	request = bytes.Replace(request, []byte("/openai/v1/"), []byte(w.prefix), 1)
	return bytes.Replace(request, []byte("Bearer sk-bench"), []byte("Bearer "+w.key), 1)
}

// contest is the ways to one stand-in.
type contest struct {
	upstream *standIn
	ways     [3]way
}

func besideLiteLLM(ctx context.Context, r *report, m modules, o options) (err error) {
	root, err := envoy.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-litellm")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	upstream, err := newStandIn()
	if err != nil {
		return err
	}
	// A rival that gives up in the middle of an answer leaves an error of the
	// stand-in behind; what that did to the figures is seen at the client.
	defer func() { err = errors.Join(err, upstream.close()) }()
	venv := filepath.Join(root, "build", "out", "litellm")
	theirs, err := startLiteLLM(ctx, filepath.Join(venv, "bin", "litellm"), dir, upstream.address())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theirs.stop()) }()
	e, err := start(ctx, upstream.address(), m.shipped)
	if err != nil {
		return err
	}
	defer stop(e, &err)
	r.Machine = append(r.Machine,
		fact{"ours", "Envoy with the shipped envoy.yaml, one worker"},
		fact{"LiteLLM", installedLiteLLM(venv)}, fact{"LiteLLM's settings", litellmSettings})
	c := contest{upstream, [3]way{
		{"direct", upstream.address(), 0, "/openai/v1/", "sk-bench"},
		{"ours", e.Addr, e.PID, "/openai/v1/", "sk-bench"},
		{"LiteLLM", theirs.address, theirs.command.Process.Pid, "/v1/", theirs.key},
	}}
	return c.run(r, scenes(o), loads(), o)
}

func (c *contest) run(r *report, ones, many []scene, o options) error {
	for _, s := range ones {
		s.pairs = max(s.pairs/contestPairsPart, min(s.pairs, contestPairsMin))
		if err := c.added(r, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for _, s := range many {
		if err := c.load(r, s, o); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for _, line := range []struct{ work, name string }{{"resident", "VmRSS"}, {"resident at its peak", "VmHWM"}} {
		r.compare(comparison{processSection, line.work, []figure{
			figure{Name: "ours", Unit: "MB"}.or(statusMB(c.ways[ours].pid, line.name)),
			figure{Name: "LiteLLM", Unit: "MB"}.or(statusMB(c.ways[rival].pid, line.name)),
		}})
	}
	return nil
}

// words are what an answer says.
type words struct{ text, arguments string }

// said reads OpenAI's answer, JSON or a stream. A stream that does not end as one
// has to, says nothing.
func said(body []byte) (w words) {
	if gjson.ValidBytes(body) {
		message := gjson.GetBytes(body, "choices.0.message")
		return words{message.Get("content").String(), message.Get("tool_calls.0.function.arguments").String()}
	}
	if !bytes.HasSuffix(body, streamsEnd) {
		return words{}
	}
	return streamed(body, "choices.0.delta.content", "choices.0.delta.tool_calls.0.function.arguments")
}

// meant reads Anthropic's answer in the same way.
func meant(body []byte) words {
	if gjson.ValidBytes(body) {
		return words{text: gjson.GetBytes(body, "content.0.text").String(), arguments: gjson.GetBytes(body, "content.0.input").Raw}
	}
	return streamed(body, "delta.text", "delta.partial_json")
}

// streamed joins what the events of a stream have at two paths.
func streamed(body []byte, textPath, argumentsPath string) words {
	var text, arguments strings.Builder
	for data := range events(body) {
		text.WriteString(gjson.GetBytes(data, textPath).String())
		arguments.WriteString(gjson.GetBytes(data, argumentsPath).String())
	}
	return words{text.String(), arguments.String()}
}

// events goes over the JSON objects that a stream brings.
func events(stream []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(stream) {
			data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
			if ok && gjson.ValidBytes(data) && !yield(data) {
				return
			}
		}
	}
}

// warm asks one way some times and gives what it says, and the bytes of its
// shortest answer.
func warm(c *client, request []byte, read func([]byte) words) (w words, least int, err error) {
	for i := range warmUps {
		msg, err := c.send(request, true)
		if err != nil {
			return words{}, 0, err
		}
		now := read(msg.body)
		if i > 0 && now != w {
			return words{}, 0, fmt.Errorf("two answers to one request differ: %.100q, %.100q", w, now)
		}
		w = now
		if least == 0 || msg.bytes < least {
			least = msg.bytes
		}
	}
	return w, least, nil
}

// entrants are those who take part in one kind of work: a connection and a
// request each way. Where the rival fails it is left out, and failed says why.
type entrants struct {
	clients  []*client
	requests [][]byte
	failed   string
}

func (e *entrants) close() {
	for _, c := range e.clients {
		c.close()
	}
}

// leaveRivalOut takes the rival's failure as a result.
func (e *entrants) leaveRivalOut(why error) {
	for _, c := range e.clients[rival:] {
		c.close()
	}
	e.clients, e.requests, e.failed = e.clients[:rival], e.requests[:rival], "fails: "+cell(why.Error())
}

// cell makes a text fit a cell of a table.
func cell(text string) string {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "|", "/")), " ")
	if runes := []rune(text); len(runes) > 160 {
		text = string(runes[:160]) + "…"
	}
	return text
}

// enter opens a connection each way, warms the proxies up, and sees that both say
// what the upstream has said. Ours must; that the rival does not is a result.
func (c *contest) enter(s scene) (e *entrants, err error) {
	c.upstream.reply.Store(s.reply)
	e = &entrants{}
	var truth words
	for i := range c.ways {
		w := &c.ways[i]
		connection, err := dial(w.address)
		if err != nil {
			return e, fmt.Errorf("%s: %w", w.name, err)
		}
		e.clients, e.requests = append(e.clients, connection), append(e.requests, w.spell(s.request))
		read := said
		if i == direct {
			read = meant
		}
		answer, least, err := warm(connection, e.requests[i], read)
		if i == direct {
			truth = answer
		}
		if err == nil && (answer == words{} || answer != truth) {
			err = fmt.Errorf("says %.100q where the upstream has said %.100q", answer, truth)
		}
		switch {
		case err == nil:
			connection.least = least
		case i == rival:
			e.leaveRivalOut(err)
		default:
			return e, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return e, nil
}

// added measures what each proxy adds to the median of one connection's
// exchanges.
func (c *contest) added(r *report, s scene) error {
	e, err := c.enter(s)
	defer e.close()
	if err != nil {
		return err
	}
	taken, err := byTurns(e.clients, e.requests, s)
	if failed := (*sideError)(nil); errors.As(err, &failed) && failed.side == rival {
		e.leaveRivalOut(err)
		taken, err = byTurns(e.clients, e.requests, s)
	}
	if err != nil {
		return err
	}
	base := median(taken[direct])
	mine, theirs := median(taken[ours])-base, math.NaN()
	if e.failed == "" {
		theirs = median(taken[rival]) - base
	}
	r.compare(comparison{addedSection, s.name, []figure{
		{Name: "ours", Unit: "ms", Value: mine},
		figure{Name: "LiteLLM", Unit: "ms"}.orWhy(theirs, e.failed),
		figure{Name: "LiteLLM / ours"}.or(quotient(theirs, mine)),
		{Name: "a direct call", Unit: "ms", Value: base},
		{Name: "medians of", Value: float64(s.pairs)},
	}})
	return nil
}

// or gives the figure a value; one that is no number is shown as a dash.
func (f figure) or(v float64) figure { return f.orWhy(v, "–") }

func (f figure) orWhy(v float64, none string) figure {
	if math.IsNaN(v) {
		f.None = none
		return f
	}
	f.Value = v
	return f
}

// quotient is no number where one of both is none, or is nothing: two medians
// may be as good as equal.
func quotient(a, b float64) float64 {
	if a > 0 && b > 0 {
		return a / b
	}
	return math.NaN()
}

// load compares the exchanges that each gets through, and what they cost it. The
// sides are loaded by turns.
func (c *contest) load(r *report, s scene, o options) error {
	e, err := c.enter(s)
	defer e.close()
	if err != nil {
		return err
	}
	var rates, costs [3][]float64
	for range o.windows {
		for i := ours; i < len(e.clients); i++ {
			w := &c.ways[i]
			rate, cost, err := load8(w.address, w.pid, e.requests[i], e.clients[i].least, o.window)
			if err != nil && i == rival {
				e.leaveRivalOut(err)
				break
			}
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			rates[i] = append(rates[i], rate)
			costs[i] = append(costs[i], cost)
		}
	}
	mine, theirs, theirCost := median(rates[ours]), math.NaN(), math.NaN()
	if e.failed == "" {
		theirs, theirCost = median(rates[rival]), known(median(costs[rival]))
	}
	r.compare(comparison{loadSection, s.name, []figure{
		{Name: "ours", Unit: "/s", Value: mine},
		figure{Name: "LiteLLM", Unit: "/s"}.orWhy(theirs, e.failed),
		figure{Name: "ours / LiteLLM"}.or(quotient(mine, theirs)),
		figure{Name: "processor time for each, ours", Unit: "µs"}.or(known(median(costs[ours]))),
		figure{Name: "LiteLLM's", Unit: "µs"}.or(theirCost),
	}})
	return nil
}

// known is no number for 0, which a system gives that does not tell.
func known(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

// statusMB is a figure of a process's memory as Linux tells it, in MB of 2^20 bytes.
func statusMB(pid int, name string) float64 {
	kB, err := strconv.ParseFloat(strings.TrimSuffix(lineOf(fmt.Sprintf("/proc/%d/status", pid), name), " kB"), 64)
	if err != nil {
		return math.NaN() // another system
	}
	return kB * 1024 / mb
}
