package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"ezat.io/chat-completions/harness/internal/abi"
)

// worker is what a worker thread is to Envoy: it has one VM and runs one thing
// at a time. Nothing that can block happens while mu is held.
type worker struct {
	host   *Host
	index  int
	random io.Reader

	mu       sync.Mutex
	vm       *vm // the last one that was loaded, failed or not
	lastLoad time.Time
	posted   []func() // runs before mu is released
	stopped  bool
}

func newWorker(h *Host, index int) *worker {
	return &worker{host: h, index: index, random: h.config.random(index)}
}

// do runs f on the worker, and then what f left to be run.
func (w *worker) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	for len(w.posted) > 0 {
		next := w.posted[0]
		w.posted = w.posted[1:]
		next()
	}
}

// start loads the first VM.
func (w *worker) start() error {
	var err error
	w.do(func() { err = w.load() })
	return err
}

// load makes a new VM the worker's.
func (w *worker) load() error {
	w.lastLoad = w.host.config.Clock.Now()
	v, err := newVM(w)
	if err == nil {
		err = v.start()
	}
	if v != nil {
		w.vm = v
		if err != nil {
			v.fail(err)
			v.free()
		}
	}
	return err
}

// current is the VM for a new stream: a failed one is replaced when the policy
// and the backoff allow it.
func (w *worker) current() *vm {
	c := &w.host.config
	if w.vm.failure != nil && c.FailurePolicy == FailReload && !w.stopped &&
		c.Clock.Now().Sub(w.lastLoad) >= c.ReloadBackoff {
		if err := w.load(); err != nil {
			w.host.say(w.index, Critical, "harness: reload the VM: "+err.Error())
		}
	}
	return w.vm
}

// stop ends the plugin context and frees the VM.
func (w *worker) stop() {
	w.do(func() {
		w.stopped = true
		if w.vm != nil {
			w.vm.shutdown()
		}
	})
}

// vm is one instance of the module with the contexts that live in it.
type vm struct {
	w         *worker
	host      *Host
	mod       api.Module
	ctx       context.Context // carries the vm to its hostcalls
	callCtx   context.Context // the same with the deadline of the outermost call
	functions map[string]api.Function

	failure    error // why the guest is dead; nil while it lives
	freed      bool
	starting   bool // only a few hostcalls are allowed
	configured bool

	contexts  map[uint32]*guestContext
	nextID    uint32
	root      *guestContext
	streams   map[*Stream]bool // that have not ended
	current   *guestContext    // whose callback runs; nil between callbacks
	effective uint32           // what proxy_set_effective_context chose, 0: none
	depth     int              // callbacks under way, one inside the other
	after     []func()         // what runs once the callback has returned
	stopNext  bool             // a local reply was sent: the callback stops its stream

	doneAwaited, doneCalled bool // the plugin context's end

	tickPeriod time.Duration
	stopTick   func() bool

	callouts  map[uint32]*Callout
	nextCall  uint32
	answering *calloutAnswer // shown to the guest in its callback
	status    abi.Status     // proxy_get_status
	statusMsg string
}

// guestContext is a context of the ABI: the plugin's, whose stream is nil, or a
// stream's.
type guestContext struct {
	id     uint32
	stream *Stream
}

// newVM makes an instance; nothing of the guest has run yet.
func newVM(w *worker) (*vm, error) {
	v := &vm{
		w: w, host: w.host,
		functions: map[string]api.Function{},
		contexts:  map[uint32]*guestContext{},
		streams:   map[*Stream]bool{},
		callouts:  map[uint32]*Callout{},
		nextID:    1,
	}
	v.ctx = abi.WithHost(context.Background(), v)
	v.callCtx = v.ctx
	var err error
	// WithStartFunctions: nothing is called by itself, the order is ours.
	v.mod, err = w.host.runtime.InstantiateModule(v.ctx, w.host.compiled,
		wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("harness: instantiate the module: %w", err)
	}
	for name := range w.host.compiled.ExportedFunctions() {
		if w.host.allowed != nil && strings.HasPrefix(name, "proxy_on_") && !w.host.allowed[name] &&
			name != "proxy_on_memory_allocate" {
			continue
		}
		v.functions[name] = v.mod.ExportedFunction(name)
	}
	return v, nil
}

// start runs the module's own initialisation, creates the plugin context and
// hands it its configuration, in Envoy's order.
func (v *vm) start() error {
	logged := len(v.host.Log())
	v.starting = true
	if v.has("_initialize") {
		v.invoke(nil, "_initialize")
		if v.failure == nil && v.has("main") {
			v.invoke(nil, "main", 0, 0)
		}
	} else if v.has("_start") {
		v.invoke(nil, "_start")
	}
	v.starting = false
	if v.failure != nil {
		return v.startError("the module does not initialise", logged)
	}
	v.root = v.newContext(nil)
	id := uint64(v.root.id)
	v.notify(v.root, "proxy_on_context_create", id, 0)
	size := uint64(len(v.host.config.VMConfig))
	if v.failure == nil && v.has("proxy_on_vm_start") && v.ask(v.root, "proxy_on_vm_start", id, size) == 0 {
		return v.startError("the guest refuses to start", logged)
	}
	size = uint64(len(v.host.config.PluginConfig))
	if v.failure == nil && v.has("proxy_on_configure") {
		v.configured = false
		accepted := v.ask(v.root, "proxy_on_configure", id, size) != 0
		v.configured = true
		if !accepted && v.failure == nil {
			return v.startError("the guest refuses its configuration", logged)
		}
	}
	if v.failure != nil {
		return v.startError("the guest fails while it starts", logged)
	}
	return nil
}

// startError says why a VM does not start, with what the guest logged meanwhile.
func (v *vm) startError(what string, logged int) error {
	text := "harness: " + what
	lines := v.host.Log()
	for _, l := range lines[min(logged, len(lines)):] {
		text += "\n\t" + l.Message
	}
	if v.failure != nil {
		return fmt.Errorf("%s: %w", text, v.failure)
	}
	return errors.New(text)
}

func (v *vm) has(name string) bool { return v.functions[name] != nil }

func (v *vm) newContext(s *Stream) *guestContext {
	for v.contexts[v.nextID] != nil || v.nextID == 0 {
		v.nextID++
	}
	g := &guestContext{id: v.nextID, stream: s}
	v.contexts[g.id] = g
	v.nextID++
	return g
}

// invoke calls an exported function for a context. A guest that fails is dead
// from then on; the result is 0.
func (v *vm) invoke(g *guestContext, name string, args ...uint64) uint64 {
	if v.failure != nil {
		return 0
	}
	current, effective := v.current, v.effective
	v.current, v.effective = g, 0
	if v.depth++; v.depth == 1 && v.host.config.CallTimeout > 0 {
		ctx, cancel := context.WithTimeout(v.ctx, v.host.config.CallTimeout)
		defer cancel()
		v.callCtx = ctx
	}
	f := v.functions[name]
	if v.depth > 1 {
		f = v.mod.ExportedFunction(name) // one api.Function cannot be entered twice
	}
	out, err := f.Call(v.callCtx, args...)
	v.depth--
	v.current, v.effective = current, effective
	if err != nil {
		v.fail(fmt.Errorf("%s: %w", name, err))
	}
	if v.failure != nil || len(out) == 0 {
		return 0
	}
	return out[0]
}

// ask is a callback with a result; afterwards the actions that it put off run.
func (v *vm) ask(g *guestContext, name string, args ...uint64) uint64 {
	out := v.invoke(g, name, args...)
	v.finish()
	return out
}

// notify is a callback without a result, when the guest has it.
func (v *vm) notify(g *guestContext, name string, args ...uint64) {
	if v.failure == nil && v.has(name) {
		v.ask(g, name, args...)
	}
}

// finish runs what hostcalls put off until their callback has returned.
func (v *vm) finish() {
	v.stopNext = false
	for len(v.after) > 0 {
		next := v.after[0]
		v.after = v.after[1:]
		next()
	}
	if v.failure != nil && v.depth == 0 {
		v.free()
	}
}

// later puts an action off until the callback under way has returned.
func (v *vm) later(f func()) {
	if v.depth == 0 {
		f()
		return
	}
	v.after = append(v.after, f)
}

// fail marks the guest as dead. Its streams notice at their next event.
func (v *vm) fail(err error) {
	if v.failure != nil {
		return
	}
	v.failure = err
	v.host.say(v.w.index, Critical, "harness: the guest has failed: "+err.Error())
	v.setTick(0)
	for _, c := range v.callouts {
		c.cancel()
	}
	v.tellStreams()
}

// free gives the instance's memory back. It must not be inside a callback.
func (v *vm) free() {
	if v.freed {
		return
	}
	v.freed = true
	if err := v.mod.Close(v.ctx); err != nil {
		v.host.say(v.w.index, Error, "harness: close the VM: "+err.Error())
	}
}

// shutdown ends the plugin context as Envoy does when the plugin goes.
func (v *vm) shutdown() {
	v.setTick(0)
	for _, c := range v.callouts {
		c.cancel()
	}
	if v.root != nil && v.failure == nil {
		id := uint64(v.root.id)
		if !v.has("proxy_on_done") || v.ask(v.root, "proxy_on_done", id) != 0 {
			v.notify(v.root, "proxy_on_delete", id)
		} else {
			v.doneAwaited = !v.doneCalled
		}
	}
	if v.failure == nil {
		v.failure = errors.New("harness: the host is closed")
		v.tellStreams()
	}
	v.free()
}

// tellStreams tells those streams that want to know that the guest is dead.
func (v *vm) tellStreams() {
	for s := range v.streams {
		if s.onVMFailure != nil {
			s.onVMFailure()
		}
	}
}

// setTick sets the period of proxy_on_tick; 0 ends it.
func (v *vm) setTick(period time.Duration) {
	if v.stopTick != nil {
		v.stopTick()
		v.stopTick = nil
	}
	v.tickPeriod = period
	if period > 0 {
		v.stopTick = v.host.config.Clock.AfterFunc(period, v.tick)
	}
}

func (v *vm) tick() {
	v.w.do(func() {
		if v.failure != nil || v.tickPeriod == 0 {
			return
		}
		v.notify(v.root, "proxy_on_tick", uint64(v.root.id))
		if v.failure == nil && v.tickPeriod > 0 {
			v.setTick(v.tickPeriod)
		}
	})
}
