package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ezat.io/chat-completions/build/bench/loops"
	"ezat.io/chat-completions/build/bench/work"
)

// item is one piece of work for the loops.
type item struct {
	name  string
	body  []byte
	loops []string // of the core
	gjson []byte   // what the yardstick validates; nil for none
}

// Loops that a request runs: without a host, and with the pieces put into the
// host's buffer.
var requestLoops = []string{"request", "append", "copy"}

const (
	nameSmall     = "1 KB chat"
	nameAgent     = "104 KB agent turn"
	nameImage     = "24 MB image"
	nameText      = "text delta"
	nameArguments = "tool-argument delta"
	nameBase64    = "base64, a downloaded image of 1 MB"
)

// batch is how many deltas come at once in the items that say so.
const batch = 64

func items() []item {
	requests := []item{
		{name: nameSmall, body: work.SmallChat()},
		{name: nameAgent, body: work.AgentTurn()},
		{name: "128 KB talk", body: work.Conversation(128 << 10)},
		{name: "1.2 MB talk", body: work.Conversation(1200 << 10)},
		{name: nameImage, body: work.Image(24 << 20)},
	}
	for i := range requests {
		requests[i].loops, requests[i].gjson = requestLoops, requests[i].body
	}
	return append(requests,
		item{nameText, work.Delta(work.TextKind, 7), []string{"text"}, work.DeltaJSON(work.TextKind, 7)},
		item{nameArguments, work.Delta(work.ArgumentsKind, 7), []string{"arguments"}, work.DeltaJSON(work.ArgumentsKind, 7)},
		item{fmt.Sprintf("%d text deltas at once", batch), work.Deltas(work.TextKind, batch), []string{"text"}, nil},
		item{fmt.Sprintf("%d tool-argument deltas at once", batch), work.Deltas(work.ArgumentsKind, batch), []string{"arguments"}, nil},
		item{nameBase64, make([]byte, 1<<20), []string{"base64"}, nil},
	)
}

// yard is the name of the yardstick among the loops.
const yard = "gjson"

// figures are the figures of one place: of each item and loop, one a round.
type figures map[string][]loops.Figure

func (f figures) median(item, loop string) float64 {
	var values []float64
	for _, figure := range f[item+"/"+loop] {
		values = append(values, figure.Median)
	}
	return median(values)
}

// ratio is the median over the rounds of one loop's figure to another's.
func (f figures) ratio(item, loop, to string) float64 {
	above, below := f[item+"/"+loop], f[item+"/"+to]
	var values []float64
	for i := range above {
		values = append(values, above[i].Median/below[i].Median)
	}
	return median(values)
}

// mallocs is the fewest allocations of all rounds, in how many turns.
func (f figures) mallocs(item, loop string) (fewest uint64, turns int) {
	for i, figure := range f[item+"/"+loop] {
		if i == 0 || figure.Mallocs < fewest {
			fewest, turns = figure.Mallocs, figure.Turns
		}
	}
	return fewest, turns
}

// round runs all loops once and keeps what they took.
func (f figures) round(p place, list []item, limit time.Duration) error {
	for _, it := range list {
		for _, loop := range it.loops {
			figure, err := p.run(loop, it.body, limit)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", it.name, loop, err)
			}
			f[it.name+"/"+loop] = append(f[it.name+"/"+loop], figure)
		}
		if it.gjson == nil {
			continue
		}
		figure, err := p.yardstick(it.gjson, limit)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", it.name, yard, err)
		}
		f[it.name+"/"+yard] = append(f[it.name+"/"+yard], figure)
	}
	return nil
}

// micro measures the core by itself, in Envoy's V8, in wazero and natively. V8
// lays its code out anew in each process, which alone can make a short loop a
// third slower, so the rounds are spread over several.
func micro(ctx context.Context, r *report, m modules, o options) error {
	list := items()
	inWazero, err := newInHarness(ctx, m)
	if err != nil {
		return err
	}
	v8, wazero, onHost := figures{}, figures{}, figures{}
	if err = (figures{}).round(inWazero, list, o.sample); err == nil { // it warms up
		err = (figures{}).round(native{}, list, o.sample)
	}
	for p := 0; p < o.processes && err == nil; p++ {
		err = inFreshEnvoy(ctx, m, func(envoy place) error {
			if err := (figures{}).round(envoy, list, o.sample); err != nil {
				return err
			}
			for range (o.rounds + o.processes - 1) / o.processes {
				if err := errors.Join(v8.round(envoy, list, o.sample), wazero.round(inWazero, list, o.sample), onHost.round(native{}, list, o.sample)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := errors.Join(err, inWazero.close()); err != nil {
		return err
	}
	microBudgets(r, v8, wazero, onHost)
	microFigures(r, list, v8, wazero, onHost)
	return nil
}

func inFreshEnvoy(ctx context.Context, m modules, run func(place) error) error {
	p, err := newInEnvoy(ctx, m)
	if err != nil {
		return err
	}
	return errors.Join(run(p), p.close())
}

func microBudgets(r *report, v8, wazero, native figures) {
	const section = "The core in Envoy's V8"
	ratio := func(item, loop, to, unit string, budget *limit) {
		r.add(row{section, item, v8.ratio(item, loop, to), unit, budget,
			"wazero " + number(wazero.ratio(item, loop, to)) + ", native " + number(native.ratio(item, loop, to))})
	}
	const (
		copies = "× one copy of the body"
		gjson  = "× gjson.ValidBytes"
	)
	ratio(nameImage, "append", "copy", copies, atMost(imageCopiesMax))
	ratio(nameAgent, "append", yard, gjson, atMost(agentTurnGJSON))
	ratio(nameSmall, "append", yard, gjson, atMost(smallChatGJSON).reached(smallChatGJSONFloor))
	ratio(nameText, "text", yard, gjson, atMost(deltaGJSON))
	ratio(nameArguments, "arguments", yard, gjson, atMost(deltaGJSON))
	for _, it := range []struct{ name, loop string }{
		{nameSmall, "request"}, {nameAgent, "request"}, {nameImage, "request"}, {nameText, "text"}, {nameArguments, "arguments"},
	} {
		v, n := v8.median(it.name, it.loop), native.median(it.name, it.loop)
		r.add(row{section, it.name + ", V8", v / n, "× native", atMost(nativeTimesMax),
			"wazero " + number(wazero.median(it.name, it.loop)/n) + "; no host in this figure"})
	}
	for _, it := range []struct{ name, loop string }{{nameText, "text"}, {nameArguments, "arguments"}} {
		fewest, turns := v8.mallocs(it.name, it.loop)
		r.add(row{section, it.name + ", allocations", float64(fewest), fmt.Sprintf("in %s events", number(float64(turns))), atMost(deltaAllocsMax), ""})
	}
}

// microFigures are the times behind the ratios.
func microFigures(r *report, list []item, v8, wazero, native figures) {
	const section = "The core, microseconds"
	what := map[string]string{
		"request": "parse, decide, write", "append": "the same, and append to the host", "copy": "one copy of the body",
		"text": "feed", "arguments": "feed", "base64": "encode", yard: "gjson.ValidBytes, untreated module",
	}
	for _, it := range list {
		names := it.loops
		if it.gjson != nil {
			names = append(names[:len(names):len(names)], yard)
		}
		for _, loop := range names {
			v := v8.median(it.name, loop)
			r.add(row{section, it.name + ": " + what[loop], v / 1000, "µs", nil, fmt.Sprintf("%s MB/s; wazero %s, native %s",
				number(float64(len(it.body))/v*1000), number(wazero.median(it.name, loop)/1000), number(native.median(it.name, loop)/1000))})
		}
	}
}
