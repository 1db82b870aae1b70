package abi

import (
	"context"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// function is one hostcall.
type function struct {
	module, name string
	signature    signature
	since        version // the first ABI that has it
	goOnly       bool    // not in the ABI; plain Go modules import it
	call         func(c *call) uint32
}

const (
	env  = "env"
	wasi = "wasi_snapshot_preview1"
)

// functions are all that a guest may import.
var functions = []function{
	{env, "proxy_log", "iii:i", v020, false, proxyLog},
	{env, "proxy_get_log_level", "i:i", v021, false, proxyGetLogLevel},
	{env, "proxy_get_current_time_nanoseconds", "i:i", v020, false, proxyGetCurrentTime},
	{env, "proxy_set_tick_period_milliseconds", "i:i", v020, false, proxySetTickPeriod},
	{env, "proxy_get_property", "iiii:i", v020, false, proxyGetProperty},
	{env, "proxy_set_property", "iiii:i", v020, false, proxySetProperty},
	{env, "proxy_get_buffer_bytes", "iiiii:i", v020, false, proxyGetBufferBytes},
	{env, "proxy_set_buffer_bytes", "iiiii:i", v020, false, proxySetBufferBytes},
	{env, "proxy_get_buffer_status", "iii:i", v020, false, proxyGetBufferStatus},
	{env, "proxy_get_header_map_size", "ii:i", v020, false, proxyGetHeaderMapSize},
	{env, "proxy_get_header_map_pairs", "iii:i", v020, false, proxyGetHeaderMapPairs},
	{env, "proxy_set_header_map_pairs", "iii:i", v020, false, proxySetHeaderMapPairs},
	{env, "proxy_get_header_map_value", "iiiii:i", v020, false, proxyGetHeaderMapValue},
	{env, "proxy_add_header_map_value", "iiiii:i", v020, false, proxyAddHeaderMapValue},
	{env, "proxy_replace_header_map_value", "iiiii:i", v020, false, proxyReplaceHeaderMapValue},
	{env, "proxy_remove_header_map_value", "iii:i", v020, false, proxyRemoveHeaderMapValue},
	{env, "proxy_continue_stream", "i:i", v020, false, proxyContinueStream},
	{env, "proxy_close_stream", "i:i", v020, false, proxyCloseStream},
	{env, "proxy_send_local_response", "iiiiiiii:i", v020, false, proxySendLocalResponse},
	{env, "proxy_http_call", "iiiiiiiiii:i", v020, false, proxyHTTPCall},
	{env, "proxy_get_status", "iii:i", v020, false, proxyGetStatus},
	{env, "proxy_set_effective_context", "i:i", v020, false, proxySetEffectiveContext},
	{env, "proxy_done", ":i", v020, false, proxyDone},
	{env, "proxy_get_shared_data", "iiiii:i", v020, false, proxyGetSharedData},
	{env, "proxy_set_shared_data", "iiiii:i", v020, false, proxySetSharedData},
	{env, "proxy_register_shared_queue", "iii:i", v020, false, proxyRegisterSharedQueue},
	{env, "proxy_resolve_shared_queue", "iiiii:i", v020, false, proxyResolveSharedQueue},
	{env, "proxy_enqueue_shared_queue", "iii:i", v020, false, proxyEnqueueSharedQueue},
	{env, "proxy_dequeue_shared_queue", "iii:i", v020, false, proxyDequeueSharedQueue},
	{env, "proxy_define_metric", "iiii:i", v020, false, proxyDefineMetric},
	{env, "proxy_increment_metric", "iI:i", v020, false, proxyIncrementMetric},
	{env, "proxy_record_metric", "iI:i", v020, false, proxyRecordMetric},
	{env, "proxy_get_metric", "ii:i", v020, false, proxyGetMetric},
	{env, "proxy_call_foreign_function", "iiiiii:i", v020, false, proxyCallForeignFunction},
	// gRPC exists only to be linked: the harness has no gRPC upstreams.
	{env, "proxy_grpc_call", "iiiiiiiiiiii:i", v020, false, unimplemented},
	{env, "proxy_grpc_stream", "iiiiiiiii:i", v020, false, unimplemented},
	{env, "proxy_grpc_send", "iiii:i", v020, false, unimplemented},
	{env, "proxy_grpc_cancel", "i:i", v020, false, unimplemented},
	{env, "proxy_grpc_close", "i:i", v020, false, unimplemented},

	{wasi, "fd_write", "iiii:i", v020, false, fdWrite},
	{wasi, "clock_time_get", "iIi:i", v020, false, clockTimeGet},
	{wasi, "random_get", "ii:i", v020, false, randomGet},
	{wasi, "environ_sizes_get", "ii:i", v020, false, environSizesGet},
	{wasi, "environ_get", "ii:i", v020, false, environGet},
	{wasi, "args_sizes_get", "ii:i", v020, false, argsSizesGet},
	{wasi, "args_get", "ii:i", v020, false, succeed},
	{wasi, "proc_exit", "i:", v020, false, procExit},

	{wasi, "sched_yield", ":i", v020, true, succeed},
	{wasi, "poll_oneoff", "iiii:i", v020, true, pollOneoff},
	{wasi, "fd_close", "i:i", v020, true, succeed},
	{wasi, "fd_fdstat_get", "ii:i", v020, true, fdStatGet},
	{wasi, "fd_fdstat_set_flags", "ii:i", v020, true, succeed},
	{wasi, "fd_prestat_get", "ii:i", v020, true, badDescriptor},
	{wasi, "fd_prestat_dir_name", "iii:i", v020, true, badDescriptor},
}

// hostKey carries the Host in the context of a call into the guest.
type hostKey struct{}

// WithHost returns a context for calls into a guest, whose hostcalls reach h.
func WithHost(ctx context.Context, h Host) context.Context {
	return context.WithValue(ctx, hostKey{}, h)
}

// Register makes all functions known to a runtime, once.
func Register(ctx context.Context, r wazero.Runtime) error {
	for _, module := range []string{env, wasi} {
		b := r.NewHostModuleBuilder(module)
		for _, f := range functions {
			if f.module == module {
				params, results := f.signature.types()
				b = b.NewFunctionBuilder().WithGoModuleFunction(f.goFunc(), params, results).Export(f.name)
			}
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("host module %s: %w", module, err)
		}
	}
	return nil
}

// goFunc wraps the hostcall for wazero. A guest that may not call it at all
// ends here, by the panic that wazero turns into an error of the guest's call.
func (f *function) goFunc() api.GoModuleFunction {
	refused := uint32(InternalFailure)
	if f.module == wasi {
		refused = wasiNotCapable
	}
	return api.GoModuleFunc(func(ctx context.Context, mod api.Module, stack []uint64) {
		h := ctx.Value(hostKey{}).(Host)
		c := &call{ctx: ctx, host: h, mod: mod, args: stack}
		allowed, err := h.Allowed(f.name)
		if err != nil {
			panic(fmt.Errorf("%s.%s: %w", f.module, f.name, err))
		}
		status := refused
		if allowed {
			status = f.call(c)
			if err := h.Alive(); err != nil {
				panic(err)
			}
		}
		if len(stack) > 0 {
			stack[0] = uint64(status)
		}
	})
}

// call is one hostcall under way.
type call struct {
	ctx  context.Context
	host Host
	mod  api.Module
	args []uint64
}

func (c *call) arg(i int) uint32 { return uint32(c.args[i]) }

// bytes copies the argument pair (address, size) at i.
func (c *call) bytes(i int) ([]byte, bool) {
	b, ok := c.mod.Memory().Read(c.arg(i), c.arg(i+1))
	if !ok {
		return nil, false
	}
	return append([]byte(nil), b...), true
}

// text is bytes as a string.
func (c *call) text(i int) (string, bool) {
	b, ok := c.mod.Memory().Read(c.arg(i), c.arg(i+1))
	return string(b), ok
}

// word writes 32 bits at the address in argument i.
func (c *call) word(i int, v uint32) bool { return c.mod.Memory().WriteUint32Le(c.arg(i), v) }

// long writes 64 bits at the address in argument i.
func (c *call) long(i int, v uint64) bool { return c.mod.Memory().WriteUint64Le(c.arg(i), v) }

// allocate asks the guest for memory and returns the address and a view of it.
// The view is good until the guest runs again.
func (c *call) allocate(size int) (uint32, []byte, bool) {
	if size > math.MaxUint32 {
		return 0, nil, false
	}
	f := c.mod.ExportedFunction("malloc")
	if f == nil {
		f = c.mod.ExportedFunction("proxy_on_memory_allocate")
	}
	out, err := f.Call(c.ctx, uint64(size))
	if err != nil {
		// The guest has failed inside its own allocator: let the failure go on
		// through the hostcall, so that the call into the guest ends with it.
		panic(err)
	}
	address := uint32(out[0])
	if address == 0 {
		return 0, nil, false
	}
	view, ok := c.mod.Memory().Read(address, uint32(size))
	return address, view, ok
}

// give copies b into fresh guest memory, and writes address and size through
// the pointers in arguments i and i+1. Nothing is allocated for nothing.
func (c *call) give(i int, b []byte) Status {
	var address uint32
	if len(b) > 0 {
		var view []byte
		var ok bool
		if address, view, ok = c.allocate(len(b)); !ok {
			return InvalidMemoryAccess
		}
		copy(view, b)
	}
	if !c.word(i, address) || !c.word(i+1, uint32(len(b))) {
		return InvalidMemoryAccess
	}
	return OK
}

// result is the status as a hostcall returns it.
func (s Status) result() uint32 { return uint32(s) }

func unimplemented(*call) uint32 { return Unimplemented.result() }
