//go:build wasip1

package main

import (
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// The SDK's exports are written for another compiler. These are ours in their
// place: each calls the SDK's own callback, which keeps the table of contexts.
// Only the answers to callouts go past the SDK: see contextTable.
//
// Those callbacks panic on an id that they do not know, and a panic takes down
// every stream of the VM. So ids are checked here first; an unknown one is
// logged and passed by.

//go:linkname sdkOnVMStart github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnVMStart
func sdkOnVMStart(context uint32, size int) types.OnVMStartStatus

//go:linkname sdkOnConfigure github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnConfigure
func sdkOnConfigure(context uint32, size int) types.OnPluginStartStatus

//go:linkname sdkOnContextCreate github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnContextCreate
func sdkOnContextCreate(context, parent uint32)

//go:linkname sdkOnRequestHeaders github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnRequestHeaders
func sdkOnRequestHeaders(context uint32, headers int, end bool) types.Action

//go:linkname sdkOnRequestBody github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnRequestBody
func sdkOnRequestBody(context uint32, size int, end bool) types.Action

//go:linkname sdkOnRequestTrailers github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnRequestTrailers
func sdkOnRequestTrailers(context uint32, trailers int) types.Action

//go:linkname sdkOnResponseHeaders github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnResponseHeaders
func sdkOnResponseHeaders(context uint32, headers int, end bool) types.Action

//go:linkname sdkOnResponseBody github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnResponseBody
func sdkOnResponseBody(context uint32, size int, end bool) types.Action

//go:linkname sdkOnResponseTrailers github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnResponseTrailers
func sdkOnResponseTrailers(context uint32, trailers int) types.Action

//go:linkname sdkOnLog github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnLog
func sdkOnLog(context uint32)

//go:linkname sdkOnDone github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnDone
func sdkOnDone(context uint32) bool

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
	if !contexts.known(context, pluginKind) {
		return false
	}
	return bool(sdkOnConfigure(context, int(size)))
}

//go:wasmexport proxy_on_context_create
func exportContextCreate(context, parent uint32) {
	if contexts.add(context, parent) {
		sdkOnContextCreate(context, parent)
	}
}

//go:wasmexport proxy_on_request_headers
func exportRequestHeaders(context, headers, end uint32) uint32 {
	if !contexts.known(context, streamKind) {
		return uint32(types.ActionContinue)
	}
	return uint32(sdkOnRequestHeaders(context, int(headers), end != 0))
}

//go:wasmexport proxy_on_request_body
func exportRequestBody(context, size, end uint32) uint32 {
	if !contexts.known(context, streamKind) {
		return uint32(types.ActionContinue)
	}
	return uint32(sdkOnRequestBody(context, int(size), end != 0))
}

//go:wasmexport proxy_on_request_trailers
func exportRequestTrailers(context, trailers uint32) uint32 {
	if !contexts.known(context, streamKind) {
		return uint32(types.ActionContinue)
	}
	return uint32(sdkOnRequestTrailers(context, int(trailers)))
}

//go:wasmexport proxy_on_response_headers
func exportResponseHeaders(context, headers, end uint32) uint32 {
	if !contexts.known(context, streamKind) {
		return uint32(types.ActionContinue)
	}
	return uint32(sdkOnResponseHeaders(context, int(headers), end != 0))
}

//go:wasmexport proxy_on_response_body
func exportResponseBody(context, size, end uint32) uint32 {
	if !contexts.known(context, streamKind) {
		return uint32(types.ActionContinue)
	}
	return uint32(sdkOnResponseBody(context, int(size), end != 0))
}

//go:wasmexport proxy_on_response_trailers
func exportResponseTrailers(context, trailers uint32) uint32 {
	if !contexts.known(context, streamKind) {
		return uint32(types.ActionContinue)
	}
	return uint32(sdkOnResponseTrailers(context, int(trailers)))
}

//go:wasmexport proxy_on_http_call_response
func exportHTTPCallResponse(context, call, _, size, _ uint32) {
	if !contexts.known(context, pluginKind) {
		return
	}
	if done, ok := contexts.endCall(context, call); ok {
		done(int(size))
	}
}

//go:wasmexport proxy_on_log
func exportLog(context uint32) {
	if contexts.known(context, streamKind) {
		sdkOnLog(context)
	}
}

//go:wasmexport proxy_on_done
func exportDone(context uint32) bool {
	return sdkOnDone(context)
}

//go:wasmexport proxy_on_delete
func exportDelete(context uint32) {
	if contexts.remove(context) {
		endStream(context)
		sdkOnDelete(context)
	}
}
