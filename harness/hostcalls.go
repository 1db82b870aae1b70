package harness

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"ezat.io/chat-completions/harness/internal/abi"
)

// The vm is what its guest calls. Each hostcall acts on the context whose
// callback runs, or on the one that the guest chose with
// proxy_set_effective_context as long as that one exists.
var _ abi.Host = (*vm)(nil)

// context is what a hostcall acts on; nil while the module initialises.
func (v *vm) context() *guestContext {
	if v.effective != 0 {
		if g := v.contexts[v.effective]; g != nil {
			return g
		}
	}
	return v.current
}

// stream is the stream that a hostcall acts on; nil for the plugin context.
func (v *vm) stream() *Stream {
	if g := v.context(); g != nil {
		return g.stream
	}
	return nil
}

// startFunctions are what a module may call while it initialises.
var startFunctions = map[string]bool{
	"proxy_log": true, "fd_write": true, "args_sizes_get": true, "args_get": true,
	"environ_sizes_get": true, "environ_get": true, "fd_prestat_get": true,
	"fd_prestat_dir_name": true, "clock_time_get": true, "random_get": true,
	// Go's own start, in a module that still has these.
	"sched_yield": true, "poll_oneoff": true, "fd_fdstat_get": true,
	"fd_fdstat_set_flags": true, "fd_close": true, "proc_exit": true,
}

// Allowed refuses what the capabilities leave out, and ends a guest that calls
// the proxy before it is started, or that another callback has killed inside
// this one.
func (v *vm) Allowed(name string) (bool, error) {
	if v.failure != nil {
		return false, v.failure
	}
	if v.starting && !startFunctions[name] {
		return false, errors.New("is not allowed while the module initialises")
	}
	if v.host.allowed != nil && !v.host.allowed[name] {
		v.host.say(v.w.index, Error, "harness: the guest calls "+name+", which its capabilities do not have")
		return false, nil
	}
	return true, nil
}

// Alive says, after a hostcall, whether the guest may go on.
func (v *vm) Alive() error { return v.failure }

// Log is proxy_log.
func (v *vm) Log(level uint32, message string) abi.Status {
	v.host.say(v.w.index, LogLevel(level), message)
	return abi.OK
}

// LogLevel is proxy_get_log_level.
func (v *vm) LogLevel() uint32 { return uint32(v.host.config.LogLevel) }

// NowNanoseconds is the host's clock. The monotonic one has the same origin.
func (v *vm) NowNanoseconds(bool) uint64 { return uint64(v.host.config.Clock.Now().UnixNano()) }

// Random fills p from the host's source.
func (v *vm) Random(p []byte) error {
	_, err := io.ReadFull(v.w.random, p)
	return err
}

// Environ is the guest's environment.
func (v *vm) Environ() []string { return v.host.config.Environment }

// Exit is proc_exit. It does not end the guest, no more than in Envoy.
func (v *vm) Exit(code uint32) {
	v.host.say(v.w.index, Error, fmt.Sprintf("harness: the guest calls proc_exit(%d)", code))
}

// Buffer finds a buffer of the context.
func (v *vm) Buffer(kind uint32) (abi.Buffer, abi.Status) {
	s := v.stream()
	switch kind {
	case abi.RequestBody:
		return s.guestBuffer(false), abi.OK
	case abi.ResponseBody:
		return s.guestBuffer(true), abi.OK
	case abi.CalloutBody:
		if v.answering == nil {
			return nil, abi.NotFound
		}
		return constBuffer(v.answering.body), abi.OK
	case abi.VMConfiguration:
		return constBuffer(v.host.config.VMConfig), abi.OK
	case abi.PluginConfiguration:
		if v.configured || v.root == nil {
			return nil, abi.NotFound
		}
		return constBuffer(v.host.config.PluginConfig), abi.OK
	case abi.DownstreamData, abi.UpstreamData, abi.GRPCMessage, abi.CallData:
		return constBuffer(""), abi.OK
	}
	return nil, abi.BadArgument
}

// mapsMax is the highest number of a map.
const mapsMax = abi.CalloutTrailers

// readable is a map to read; nil when it is not there.
func (v *vm) readable(kind uint32) *Headers {
	switch kind {
	case abi.CalloutHeaders:
		if v.answering != nil {
			return &v.answering.headers
		}
		return nil
	case abi.CalloutTrailers:
		if v.answering != nil && len(v.answering.trailers) > 0 {
			return &v.answering.trailers
		}
		return nil
	}
	return v.stream().readableMap(kind)
}

// MapPairs is proxy_get_header_map_pairs: a map that is not there is empty.
func (v *vm) MapPairs(kind uint32) ([]abi.Pair, abi.Status) {
	if kind > mapsMax {
		return nil, abi.BadArgument
	}
	if m := v.readable(kind); m != nil {
		return m.pairs(), abi.OK
	}
	return nil, abi.OK
}

// MapSize is proxy_get_header_map_size, which Envoy answers for maps that can
// be changed.
func (v *vm) MapSize(kind uint32) (int, abi.Status) {
	if m := v.stream().writableMap(kind); m != nil {
		return m.Bytes(), abi.OK
	}
	return 0, abi.BadArgument
}

// MapGet is proxy_get_header_map_value: the first value of a name.
func (v *vm) MapGet(kind uint32, name string) (string, abi.Status) {
	if kind > mapsMax {
		return "", abi.BadArgument
	}
	m := v.readable(kind)
	if m == nil {
		if s := v.stream(); s != nil && s.logging {
			return "", abi.NotFound
		}
		return "", abi.BadArgument
	}
	if value, ok := m.Lookup(name); ok {
		return value, abi.OK
	}
	return "", abi.NotFound
}

// edit changes a map, within bounds that keep a runaway guest from filling the
// host's memory.
func (v *vm) edit(kind uint32, added int, f func(m *Headers)) abi.Status {
	s := v.stream()
	m := s.writableMap(kind)
	if m == nil || m.Bytes()+added > guestHeaderFactor*v.host.config.HeaderBytesMax {
		return abi.BadArgument
	}
	f(m)
	if kind == abi.RequestHeaders {
		s.stale = true
	}
	return abi.OK
}

// MapSetAll is proxy_set_header_map_pairs.
func (v *vm) MapSetAll(kind uint32, pairs []abi.Pair) abi.Status {
	size := 0
	for _, p := range pairs {
		size += len(p.Name) + len(p.Value)
	}
	return v.edit(kind, size, func(m *Headers) { *m = headersOf(pairs) })
}

// MapAdd is proxy_add_header_map_value.
func (v *vm) MapAdd(kind uint32, name, value string) abi.Status {
	return v.edit(kind, len(name)+len(value), func(m *Headers) { m.Add(name, value) })
}

// MapReplace is proxy_replace_header_map_value.
func (v *vm) MapReplace(kind uint32, name, value string) abi.Status {
	return v.edit(kind, len(name)+len(value), func(m *Headers) { m.Set(name, value) })
}

// MapRemove is proxy_remove_header_map_value.
func (v *vm) MapRemove(kind uint32, name string) abi.Status {
	return v.edit(kind, 0, func(m *Headers) { m.Remove(name) })
}

// ContinueStream is proxy_continue_stream. Either direction takes the request's
// headers, body and trailers out of the guest's sight.
func (v *vm) ContinueStream(kind uint32) abi.Status {
	s := v.stream()
	switch kind {
	case abi.StreamRequest, abi.StreamResponse:
	case abi.StreamDownstream:
		return abi.OK
	case abi.StreamUpstream:
		return abi.Unimplemented
	default:
		return abi.BadArgument
	}
	if s == nil {
		return abi.OK
	}
	f := &s.request
	if kind == abi.StreamResponse {
		f = &s.response
	}
	v.later(f.resumeByGuest)
	s.request.shownHeaders, s.request.shownBody, s.request.shownTrailers = nil, nil, nil
	return abi.OK
}

// CloseStream is proxy_close_stream: either direction resets the stream.
func (v *vm) CloseStream(kind uint32) abi.Status {
	s := v.stream()
	if kind > abi.StreamUpstream {
		return abi.BadArgument
	}
	if s == nil || kind > abi.StreamResponse {
		return abi.OK
	}
	if s.details == nil {
		s.setDetails("wasm_close_stream")
	}
	v.later(s.abort)
	return abi.OK
}

// SendLocalResponse is proxy_send_local_response. The callback that calls it
// stops its stream whatever it returns.
func (v *vm) SendLocalResponse(r abi.Reply) abi.Status {
	if s := v.stream(); s != nil {
		v.later(func() {
			s.sendLocalReply(int(r.Code), r.Body, headersOf(r.Headers), strings.Join(strings.Fields(r.Details), "_"))
		})
	}
	v.stopNext = true
	return abi.OK
}

// HTTPCall is proxy_http_call.
func (v *vm) HTTPCall(c abi.Call) (uint32, abi.Status) { return v.httpCall(c) }

// CallStatus is proxy_get_status.
func (v *vm) CallStatus() (uint32, string) { return uint32(v.status), v.statusMsg }

// SetEffectiveContext is proxy_set_effective_context.
func (v *vm) SetEffectiveContext(id uint32) abi.Status {
	if v.contexts[id] == nil {
		return abi.BadArgument
	}
	v.effective = id
	return abi.OK
}

// Done is proxy_done: it ends the plugin context when that has put its end off.
// Streams are not asked whether they are done.
func (v *vm) Done() abi.Status {
	if !v.doneAwaited {
		return abi.NotFound
	}
	v.doneAwaited, v.doneCalled = false, true
	v.later(func() { v.notify(v.root, "proxy_on_delete", uint64(v.root.id)) })
	return abi.OK
}

// SetTickPeriod is proxy_set_tick_period_milliseconds.
func (v *vm) SetTickPeriod(ms uint32) abi.Status {
	v.setTick(time.Duration(ms) * time.Millisecond)
	return abi.OK
}

// GetSharedData is proxy_get_shared_data.
func (v *vm) GetSharedData(key string) (string, uint32, abi.Status) { return v.host.shared.get(key) }

// SetSharedData is proxy_set_shared_data.
func (v *vm) SetSharedData(key, value string, cas uint32) abi.Status {
	return v.host.shared.set(key, value, cas)
}

// RegisterQueue is proxy_register_shared_queue.
func (v *vm) RegisterQueue(name string) uint32 {
	return v.host.shared.register(v.host.config.VMID, name, v, v.root.id)
}

// ResolveQueue is proxy_resolve_shared_queue; an empty VM is the guest's own.
func (v *vm) ResolveQueue(vmID, name string) (uint32, abi.Status) {
	if vmID == "" {
		vmID = v.host.config.VMID
	}
	return v.host.shared.resolve(vmID, name)
}

// Enqueue is proxy_enqueue_shared_queue. The context that registered the queue
// is told once this worker is at rest, on its own worker.
func (v *vm) Enqueue(id uint32, value string) abi.Status {
	owner, root, st := v.host.shared.enqueue(id, value)
	if st != abi.OK {
		return st
	}
	ready := func() {
		if g := owner.contexts[root]; g != nil {
			owner.notify(g, "proxy_on_queue_ready", uint64(root), uint64(id))
		}
	}
	if owner.w == v.w {
		v.w.posted = append(v.w.posted, ready)
	} else {
		go owner.w.do(ready)
	}
	return abi.OK
}

// Dequeue is proxy_dequeue_shared_queue.
func (v *vm) Dequeue(id uint32) (string, abi.Status) { return v.host.shared.dequeue(id) }

// DefineMetric is proxy_define_metric.
func (v *vm) DefineMetric(kind uint32, name string) (uint32, abi.Status) {
	return v.host.metrics.define(kind, name)
}

// IncrementMetric is proxy_increment_metric.
func (v *vm) IncrementMetric(id uint32, delta int64) abi.Status {
	return v.host.metrics.increment(id, delta)
}

// RecordMetric is proxy_record_metric.
func (v *vm) RecordMetric(id uint32, value uint64) abi.Status {
	return v.host.metrics.record(id, value)
}

// GetMetric is proxy_get_metric.
func (v *vm) GetMetric(id uint32) (uint64, abi.Status) { return v.host.metrics.get(id) }

// CallForeignFunction is proxy_call_foreign_function.
func (v *vm) CallForeignFunction(name string, args []byte) ([]byte, abi.Status) {
	if f := v.host.config.ForeignFunctions[name]; f != nil {
		if out, ok := f(args); ok {
			return out, abi.OK
		}
		return nil, abi.NotFound
	}
	if name == "clear_route_cache" {
		if s := v.stream(); s != nil {
			s.stale = true
		}
		return nil, abi.OK
	}
	return nil, abi.NotFound
}
