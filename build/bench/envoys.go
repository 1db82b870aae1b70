package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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

// processorTime is what all threads of a process have run so far. It depends
// less on what else the machine does than time on the clock. Zero where the
// system does not tell; Linux does.
func processorTime(pid int) time.Duration {
	var sum time.Duration
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is right
	for _, task := range tasks {
		ran, _, _ := strings.Cut(fileText(task), " ")
		if ns, err := strconv.ParseInt(ran, 10, 64); err == nil {
			sum += time.Duration(ns)
		}
	}
	return sum
}
