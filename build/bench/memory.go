package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"ezat.io/chat-completions/build/bench/work"
	"ezat.io/chat-completions/e2e/envoy"
)

const (
	memorySection = "Memory"
	mb            = 1 << 20

	imagesInARow = 50
	imagesEach   = 6 // on each of connectionsForLoad connections

	// vmReservedBytes is what V8 reserves of the address space for the memory of
	// one module: its pages, and behind them what can become some.
	vmReservedBytes = 8 << 30
)

// guestMemories are the memories of the modules in a process, in bytes, the
// largest first. Wasm memory only grows, so each is also its peak. V8 keeps each
// in a reservation of its own, the used part of which can be written; that is
// what is looked for in Linux's list of mappings.
func guestMemories(pid int) ([]int64, error) {
	var found []int64
	var begin, end uint64 // of the mapping before
	for line := range strings.Lines(fileText(fmt.Sprintf("/proc/%d/maps", pid))) {
		var from, to uint64
		var rights string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); n != 3 {
			continue
		}
		if rights == "---p" && from == end && to-begin == vmReservedBytes {
			found = append(found, int64(end-begin))
		}
		begin, end = from, to
	}
	if len(found) == 0 {
		return nil, errors.New("no module's memory is found in the process")
	}
	slices.Sort(found)
	slices.Reverse(found)
	return found, nil
}

// largestGuest is the memory of the worker's module: the others are idle.
func largestGuest(pid int) (float64, error) {
	all, err := guestMemories(pid)
	if err != nil {
		return 0, err
	}
	return float64(all[0]) / mb, nil
}

// memory measures the memory of the guest and of Envoy under large requests.
func memory(ctx context.Context, r *report, m modules, _ options) error {
	for _, part := range []func(context.Context, *report, *watched) error{inARow, atOnceOn8, worstInputs} {
		if err := watch(ctx, r, m, part); err != nil {
			return err
		}
	}
	return nil
}

// watched is a fresh Envoy with the filter.
type watched struct {
	envoy    *envoy.Envoy
	upstream *standIn
}

func watch(ctx context.Context, r *report, m modules, part func(context.Context, *report, *watched) error) (err error) {
	upstream, err := newStandIn()
	if err != nil {
		return err
	}
	upstream.reply.Store(whole(work.Answer()))
	defer func() { err = errors.Join(err, upstream.err(), upstream.close()) }()
	e, err := start(ctx, upstream.address(), m.shipped)
	if err != nil {
		return err
	}
	defer stop(e, &err)
	return part(ctx, r, &watched{e, upstream})
}

// resident is the memory of the whole process, and its peak.
func (w *watched) resident(ctx context.Context) string {
	use, err := w.envoy.Memory(ctx)
	if err != nil {
		return "Envoy's memory cannot be read: " + err.Error()
	}
	return fmt.Sprintf("Envoy's whole process %s MB, at its peak %s MB", number(float64(use.Resident)/mb), number(float64(use.Peak)/mb))
}

// budgetMB is the budget for the guest's memory with a body of so many bytes.
func budgetMB(body int) *limit { return atMost((memoryBodyTimes*float64(body) + memoryBaseBytes) / mb) }

func inARow(ctx context.Context, r *report, w *watched) error {
	body := work.Image(24 << 20)
	request := post(body)
	c, err := dial(w.envoy.Addr)
	if err != nil {
		return err
	}
	defer c.close()
	before, err := largestGuest(w.envoy.PID)
	if err != nil {
		return err
	}
	var after []float64
	for range imagesInARow {
		if _, err := c.ask(request); err != nil {
			return err
		}
		now, err := largestGuest(w.envoy.PID)
		if err != nil {
			return err
		}
		after = append(after, now)
	}
	last := after[imagesInARow-1]
	r.add(
		row{memorySection, fmt.Sprintf("guest, %d × 24 MB image in a row", imagesInARow), last, "MB", budgetMB(len(body)),
			fmt.Sprintf("%s MB at the start, %s behind the first; %s", number(before), number(after[0]), w.resident(ctx))},
		row{memorySection, "guest, growth over the second half of them", last - after[imagesInARow/2-1], "MB", atMost(0), ""})
	return nil
}

func atOnceOn8(ctx context.Context, r *report, w *watched) error {
	body := work.Image(24 << 20)
	request := post(body)
	var group sync.WaitGroup
	var errs [connectionsForLoad]error
	for i := range connectionsForLoad {
		group.Go(func() {
			c, err := dial(w.envoy.Addr)
			if err != nil {
				errs[i] = err
				return
			}
			defer c.close()
			for range imagesEach {
				if _, err := c.ask(request); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	now, err := largestGuest(w.envoy.PID)
	if err != nil {
		return err
	}
	r.add(row{memorySection, fmt.Sprintf("guest, 24 MB images on %d connections at once, %d each", connectionsForLoad, imagesEach), now, "MB",
		budgetMB(len(body)), w.resident(ctx)})
	return nil
}

// costly are inputs that cost most for their size. None has a budget: they are
// bounded by the limits of the core, and shown.
func costly() []item {
	return []item{
		{name: "24 MB of escapes", body: work.Escapes(24 << 20)},
		{name: "499,000 numbers in a schema", body: work.Values(499_000)},
		{name: "160,000 text parts of one letter", body: work.Parts(160_000)},
		{name: "160,000 messages of a few words", body: work.Messages(160_000)},
		{name: "29,000 tool calls with their results", body: work.Calls(29_000)},
	}
}

// worstInputs sends them one after the other to one guest.
func worstInputs(ctx context.Context, r *report, w *watched) error {
	c, err := dial(w.envoy.Addr)
	if err != nil {
		return err
	}
	defer c.close()
	for _, it := range costly() {
		x, err := c.ask(post(it.body))
		if err != nil {
			return fmt.Errorf("%s: %w", it.name, err)
		}
		now, err := largestGuest(w.envoy.PID)
		if err != nil {
			return err
		}
		r.add(row{memorySection, "guest behind a request with " + it.name, now, "MB", nil,
			fmt.Sprintf("a body of %s MB, whole exchange %s ms; %s", number(float64(len(it.body))/mb), number(ms(x.whole)), w.resident(ctx))})
	}
	return nil
}
