package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"ezat.io/chat-completions/build/bench/work"
)

// doublings is how often a size is doubled.
const doublings = 4

// series is work of one kind in growing sizes.
type series struct {
	name string
	unit string
	from int // the smallest size, in units
	loop string
	make func(n int) []byte
}

// allSeries begins each series where it is beyond what the parser keeps of its
// memory from one request to the next: below that a byte costs less.
func allSeries() []series {
	return []series{
		{"plain text", "× 1.5 MB", 1, "request", func(n int) []byte { return work.Text(n * 3 << 19) }},
		{"an image", "× 1.5 MB", 1, "request", func(n int) []byte { return work.Image(n * 3 << 19) }},
		{"a talk", "MB", 1, "request", func(n int) []byte { return work.Conversation(n << 20) }},
		{"messages", "", 20_000, "request", work.Messages},
		{"tool calls", "", 3_000, "request", work.Calls},
		{"tools", "", 2_000, "request", work.Tools},
		{"parts, tiny", "", 20_000, "request", work.Parts},
		{"events, in pieces of 16 KB", "", 2_000, "pieces", func(n int) []byte { return work.Deltas(work.TextKind, n) }},
		{"nothing but escapes", "× 1.5 MB", 1, "request", func(n int) []byte { return work.Escapes(n * 3 << 19) }},
		{"numbers in a schema", "", 120_000, "request", work.Values},
	}
}

// growth doubles the size of the work four times and compares what a unit
// costs. Least times are compared, because a disturbance only adds.
func growth(ctx context.Context, r *report, m modules, o options) error {
	v8, err := newInEnvoy(ctx, m)
	if err != nil {
		return err
	}
	for _, s := range allSeries() {
		if err = grow(r, v8, s, o); err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			break
		}
	}
	return errors.Join(err, v8.close())
}

// growthRuns is how often each size is run: the larger ones get few turns in one.
const growthRuns = 3

func grow(r *report, p place, s series, o options) error {
	var costs []float64
	var shown []string
	for i := range doublings + 1 {
		body := s.make(s.from << i)
		if i == 0 { // the VM warms up
			if _, err := p.run(s.loop, body, o.sample); err != nil {
				return err
			}
		}
		least := math.Inf(1)
		for range growthRuns {
			f, err := p.run(s.loop, body, o.sample)
			if err != nil {
				return err
			}
			least = min(least, f.Least)
		}
		costs = append(costs, least/float64(len(body)))
		shown = append(shown, number(least/1e6))
	}
	most := 0.0
	for _, c := range costs {
		most = max(most, c/costs[0])
	}
	r.add(row{"Growth in V8: what a byte costs at sizes doubled four times", s.name, most, "× the smallest", atMost(growthTimesMax),
		strings.TrimSpace(fmt.Sprintf("from %s %s: %s ms", number(float64(s.from)), s.unit, strings.Join(shown, ", ")))})
	return nil
}
