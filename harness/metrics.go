package harness

import (
	"slices"
	"strings"
	"sync"

	"ezat.io/chat-completions/harness/internal/abi"
)

// MetricKind says what a metric is.
type MetricKind uint32

// The kinds of the ABI.
const (
	Counter   = MetricKind(abi.Counter)
	Gauge     = MetricKind(abi.Gauge)
	Histogram = MetricKind(abi.Histogram)
)

// Metric is a guest's metric. All workers share it, as in Envoy.
type Metric struct {
	Name  string
	Kind  MetricKind
	Value uint64 // of a counter or gauge; the sum of a histogram's samples
	Count uint64 // of a histogram's samples
	// Samples are a histogram's first samples in order, at most 1,024.
	Samples []uint64
}

// Bounds of what a guest can make the host keep.
const (
	metricsMax       = 4096
	metricNameBytes  = 1024
	metricIDsMax     = 65536
	metricSamplesMax = 1024
)

// registry holds the metrics of a host.
type registry struct {
	mu      sync.Mutex
	metrics map[registryKey]*Metric
	ids     []*Metric // by id, whose lowest two bits are the kind
}

type registryKey struct {
	kind MetricKind
	name string
}

// define returns a new id for a metric: defining it twice gives two ids for one
// metric.
func (r *registry) define(kind uint32, name string) (uint32, abi.Status) {
	if kind > abi.Histogram {
		return 0, abi.BadArgument
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := registryKey{MetricKind(kind), name}
	m := r.metrics[key]
	if m == nil {
		if len(r.metrics) >= metricsMax || len(name) > metricNameBytes {
			return 0, abi.InternalFailure
		}
		m = &Metric{Name: name, Kind: key.kind}
		if r.metrics == nil {
			r.metrics = map[registryKey]*Metric{}
		}
		r.metrics[key] = m
	}
	if len(r.ids) >= metricIDsMax {
		return 0, abi.InternalFailure
	}
	r.ids = append(r.ids, m)
	return uint32(len(r.ids))<<2 | kind, abi.OK
}

// lookup finds a metric by its id. An id of no known kind is a bad argument.
func (r *registry) lookup(id uint32) (*Metric, abi.Status) {
	if id&3 == 3 {
		return nil, abi.BadArgument
	}
	n := int(id >> 2)
	if n == 0 || n > len(r.ids) || uint32(r.ids[n-1].Kind) != id&3 {
		return nil, abi.NotFound
	}
	return r.ids[n-1], abi.OK
}

func (r *registry) increment(id uint32, delta int64) abi.Status {
	if id&3 == abi.Histogram {
		return abi.BadArgument
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m, st := r.lookup(id)
	if st != abi.OK {
		return st
	}
	if m.Kind == Counter && delta <= 0 {
		return abi.BadArgument
	}
	m.Value += uint64(delta)
	return abi.OK
}

func (r *registry) record(id uint32, value uint64) abi.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, st := r.lookup(id)
	if st != abi.OK {
		return abi.NotFound
	}
	switch m.Kind {
	case Counter:
		m.Value += value
	case Gauge:
		m.Value = value
	case Histogram:
		m.Value += value
		m.Count++
		if len(m.Samples) < metricSamplesMax {
			m.Samples = append(m.Samples, value)
		}
	}
	return abi.OK
}

func (r *registry) get(id uint32) (uint64, abi.Status) {
	if id&3 == abi.Histogram {
		return 0, abi.BadArgument
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m, st := r.lookup(id)
	if st != abi.OK {
		return 0, st
	}
	return m.Value, abi.OK
}

// Metrics returns all metrics that guests have defined, by name.
func (h *Host) Metrics() []Metric {
	h.metrics.mu.Lock()
	defer h.metrics.mu.Unlock()
	var out []Metric
	for _, m := range h.metrics.metrics {
		c := *m
		c.Samples = slices.Clone(m.Samples)
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Metric) int {
		if n := strings.Compare(a.Name, b.Name); n != 0 {
			return n
		}
		return int(a.Kind) - int(b.Kind)
	})
	return out
}

// Metric returns the metric of a name, whatever its kind, and whether a guest
// has defined it.
func (h *Host) Metric(name string) (Metric, bool) {
	for _, m := range h.Metrics() {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}
