package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
)

const wasmFilter = "envoy.filters.http.wasm"

// start starts Envoy with the shipped file and one worker.
func start(ctx context.Context, upstream, module string, edits ...envoy.Edit) (*envoy.Envoy, error) {
	return envoy.Start(ctx, envoy.Options{Upstreams: []string{upstream}, Module: module, Concurrency: 1, LogLevel: "warning", Edits: edits})
}

// withoutFilter takes the filter out and leaves everything else.
func withoutFilter(c *envoy.Config) error {
	place := envoy.At(envoy.HCM, "http_filters")
	list, err := c.Get(place...)
	if err != nil {
		return err
	}
	filters, _ := list.([]any)
	var kept []any
	for _, f := range filters {
		if m, _ := f.(map[string]any); m["name"] != wasmFilter {
			kept = append(kept, f)
		}
	}
	if len(kept) != len(filters)-1 {
		return errors.New("the file has no filter to take out")
	}
	return c.Set(kept, place...)
}

// anyCapability lets a module use what a plain Go module imports.
func anyCapability(c *envoy.Config) error {
	return c.Remove(envoy.At(envoy.Filter, "capability_restriction_config")...)
}

// stop stops an Envoy, and reports a fault in its log.
func stop(e *envoy.Envoy, err *error) {
	if faults := e.Faults(); len(faults) > 0 {
		*err = errors.Join(*err, errors.New("Envoy's log has faults: "+faults[0]))
	}
	*err = errors.Join(*err, e.Stop())
}

// processorTime is what a process has run so far, with the threads that have ended
// since. It depends less on what else the machine does than time on the clock. Zero
// where the system does not tell; Linux does, in hundredths of a second.
func processorTime(pid int) time.Duration {
	return ranFor(fileText(fmt.Sprintf("/proc/%d/stat", pid)))
}

// ranFor reads Linux's line about a process. The name in it, which may hold spaces
// and parentheses, ends with the last one.
func ranFor(stat string) time.Duration {
	const user, system, tick = 11, 12, 10 * time.Millisecond // counted behind the name
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0
	}
	var ticks int64
	for _, i := range []int{user, system} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}
