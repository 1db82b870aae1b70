package main

import (
	"context"
	"fmt"
	"time"
)

// size measures the module, and how late Envoy is live with it.
func size(ctx context.Context, r *report, m modules, o options) error {
	const section = "The module"
	plain, gzipped, err := sizes(m.shipped)
	if err != nil {
		return err
	}
	r.add(row{section, "size", float64(plain), "bytes", atMost(moduleBytesMax), ""},
		row{section, "gzipped", float64(gzipped), "bytes", atMost(moduleGzippedBytesMax), ""})
	var taken [2][]float64
	for range o.starts {
		for i, module := range []string{m.shipped, m.empty} {
			took, err := live(ctx, module)
			if err != nil {
				return err
			}
			taken[i] = append(taken[i], took.Seconds())
		}
	}
	shipped, empty := median(taken[0]), median(taken[1])
	r.add(row{section, "Envoy live, against an empty Go module", shipped / empty, "×", atMost(liveTimesMax).reached(liveTimesFloor),
		fmt.Sprintf("%s s with the module, %s s with an untreated empty one, medians of %d", number(shipped), number(empty), o.starts)})
	return nil
}

// live is how long Envoy takes from its start until it serves.
func live(ctx context.Context, module string) (took time.Duration, err error) {
	const nobody = "127.0.0.1:9"
	begin := time.Now()
	e, err := start(ctx, nobody, module, anyCapability)
	if err != nil {
		return 0, err
	}
	took = time.Since(begin)
	return took, e.Stop()
}
