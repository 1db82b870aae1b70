//go:build wasip1

package main

import (
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// The SDK's exports are written for another compiler. These are ours in their
// place. Those for the VM and its plugins call the SDK's own callbacks; those for
// streams and for the answers to callouts go to an exchange at once.
//
// The SDK panics on an id that it does not know, and a panic takes down every
// stream of the VM. So ids are checked here first; an unknown one is logged and
// passed by.
//
// There is no proxy_on_done: nothing is left to be waited for when a stream or a
// plugin ends, and Envoy need not ask.

//go:linkname sdkOnVMStart github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnVMStart
func sdkOnVMStart(context uint32, size int) types.OnVMStartStatus

//go:linkname sdkOnConfigure github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnConfigure
func sdkOnConfigure(context uint32, size int) types.OnPluginStartStatus

//go:linkname sdkOnContextCreate github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnContextCreate
func sdkOnContextCreate(context, parent uint32)

//go:linkname sdkOnDelete github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnDelete
func sdkOnDelete(context uint32)

func init() {
	registerHost()
	proxywasm.SetVMContext(vmContext{})
}

//go:wasmexport proxy_abi_version_0_2_0
func exportABIVersion() {}

//go:wasmexport proxy_on_memory_allocate
func exportMemoryAllocate(size uint32) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(memory.allocate(int(size))))
}

//go:wasmexport proxy_on_vm_start
func exportVMStart(context, size uint32) bool {
	return bool(sdkOnVMStart(context, int(size)))
}

//go:wasmexport proxy_on_configure
func exportConfigure(context, size uint32) bool {
	if !contexts.hasPlugin(context) {
		return false
	}
	return bool(sdkOnConfigure(context, int(size)))
}

//go:wasmexport proxy_on_context_create
func exportContextCreate(context, parent uint32) {
	if parent != 0 {
		contexts.addStream(context, parent, bridge{plugin: parent, stream: context})
	} else if contexts.addPlugin(context) {
		sdkOnContextCreate(context, 0)
	}
}

//go:wasmexport proxy_on_request_headers
func exportRequestHeaders(context, _, end uint32) Action {
	trap()
	if x := contexts.stream(context); x != nil {
		return x.RequestHeaders(end != 0)
	}
	return Continue
}

//go:wasmexport proxy_on_request_body
func exportRequestBody(context, size, end uint32) Action {
	if x := contexts.stream(context); x != nil {
		return x.RequestBody(int(size), end != 0)
	}
	return Continue
}

//go:wasmexport proxy_on_request_trailers
func exportRequestTrailers(context, _ uint32) Action {
	if x := contexts.stream(context); x != nil {
		return x.RequestTrailers()
	}
	return Continue
}

//go:wasmexport proxy_on_response_headers
func exportResponseHeaders(context, _, end uint32) Action {
	if x := contexts.stream(context); x != nil {
		return x.ResponseHeaders(end != 0)
	}
	return Continue
}

//go:wasmexport proxy_on_response_body
func exportResponseBody(context, size, end uint32) Action {
	if x := contexts.stream(context); x != nil {
		return x.ResponseBody(int(size), end != 0)
	}
	return Continue
}

//go:wasmexport proxy_on_response_trailers
func exportResponseTrailers(context, _ uint32) Action {
	if x := contexts.stream(context); x != nil {
		return x.ResponseTrailers()
	}
	return Continue
}

//go:wasmexport proxy_on_http_call_response
func exportHTTPCallResponse(context, call, _, size, _ uint32) {
	if !contexts.hasPlugin(context) {
		return
	}
	if done, ok := contexts.endCall(context, call); ok {
		done(int(size))
	}
}

//go:wasmexport proxy_on_tick
func exportTick(context uint32) {
	if !contexts.hasPlugin(context) {
		return
	}
	if p := contexts.plugins[context]; p != nil {
		p.tick(bridge{plugin: context})
	}
}

// exportLog comes before the host writes its access log, for which the usage of
// a stream must be there.
//
//go:wasmexport proxy_on_log
func exportLog(context uint32) {
	if x := contexts.stream(context); x != nil {
		x.Done()
	}
}

//go:wasmexport proxy_on_delete
func exportDelete(context uint32) {
	if contexts.remove(context) {
		sdkOnDelete(context)
	}
}
