// Command bench measures the product and holds it to its budgets: the core in
// Envoy's V8, in wazero and natively; whole exchanges through a real Envoy with
// and without the filter; memory; growth; the module's size.
//
//	make bench
//
// It prints one table, writes it to build/out/bench.md and bench.json, and ends
// with status 1 when a budget is broken. Every figure is relative to another
// one of the same run, because machines differ.
//
// The house:
//
//	work       what is measured: requests, streams
//	loops      the loops of the micro benchmarks
//	guest      modules that run the loops inside a proxy
//	budgets    every budget
//	micro      the core by itself             places: where it runs
//	whole      exchanges through Envoy        http1, standin: both ends of it
//	memory     of the guest and of Envoy
//	growth     sizes doubled
//	hostile    the bodies that cost most, and who waits beside them
//	size       of the module, and how late Envoy is live
//	contest    the same work through LiteLLM's proxy   litellm: that as a process
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
)

// options say how long things are measured.
type options struct {
	rounds    int           // of the micro benchmarks
	processes int           // of Envoy for them
	sample    time.Duration // for each loop in a round
	pairs     int           // of exchanges, for what takes less than a millisecond
	windows   int           // of load on each side
	window    time.Duration
	starts    int            // of Envoy with each module
	hostile   int            // how often each hostile body is sent
	bodies    *regexp.Regexp // which of them; the honest ones always
}

var (
	thorough = options{rounds: 9, processes: 3, sample: 200 * time.Millisecond, pairs: 600, windows: 7, window: time.Second, starts: 5, hostile: 3}
	quick    = options{rounds: 2, processes: 1, sample: 50 * time.Millisecond, pairs: 60, windows: 2, window: 300 * time.Millisecond, starts: 2, hostile: 1}
)

// part is one part of the run.
type part struct {
	name string
	run  func(context.Context, *report, modules, options) error
}

var parts = []part{
	{"micro", micro},
	{"whole", full},
	{"memory", memory},
	{"growth", growth},
	{"hostile", hostile},
	{"size", size},
}

// onDemand are parts that run only by name.
var onDemand = []part{
	{"litellm", besideLiteLLM}, // bench-litellm installs what it needs
}

func main() {
	broken, err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	case broken > 0:
		fmt.Fprintf(os.Stderr, "bench: %d budgets are broken\n", broken)
		os.Exit(1)
	}
}

// run measures and writes the table. It returns how many budgets are broken.
func run(ctx context.Context, args []string, out, progress io.Writer) (broken int, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	short := flags.Bool("quick", false, "measure for a short time only, to see that everything runs; the figures are rough")
	only := flags.String("only", "", "run only these parts, of "+strings.Join(names(), ","))
	name := flags.String("name", "bench", "the name of the files in build/out that the table is written to")
	bodies := flags.String("bodies", "", "of the hostile bodies only those whose names match, and the honest ones")
	if err := flags.Parse(args); err != nil {
		return 0, err
	}
	chosen, err := choose(*only)
	if err != nil {
		return 0, err
	}
	o := thorough
	if *short {
		o = quick
	}
	if o.bodies, err = regexp.Compile(*bodies); err != nil {
		return 0, err
	}
	root, err := envoy.Root()
	if err != nil {
		return 0, err
	}
	output := filepath.Join(root, "build", "out")
	r := &report{Began: time.Now().UTC(), Machine: machine(root), progress: progress}
	fmt.Fprintln(progress, "building the benchmarks' modules")
	m, err := build(root, filepath.Join(output, "bench"))
	if err != nil {
		return 0, err
	}
	for _, p := range chosen {
		fmt.Fprintln(progress, p.name)
		if err := p.run(ctx, r, m, o); err != nil {
			return 0, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	r.Machine = append(r.Machine, fact{"load at the end", load()})
	fmt.Fprint(out, r.markdown())
	return len(r.broken()), r.write(output, *name)
}

func names() []string {
	var list []string
	for _, p := range allParts() {
		list = append(list, p.name)
	}
	return list
}

func allParts() []part { return append(slices.Clip(parts), onDemand...) }

// choose finds the parts by name; "" is all but those on demand.
func choose(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	var chosen []part
	all := allParts()
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no part is called %q; there are %s", name, strings.Join(names(), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
