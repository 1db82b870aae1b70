//go:build wasip1

// Command failing is a module that lets every request pass but the second
// one, at which it fails as a faulty filter would.
package main

func main() {}

var requests int

//go:wasmexport proxy_abi_version_0_2_0
func abiVersion() {}

//go:wasmexport proxy_on_memory_allocate
func allocate(size uint32) uint32 { return 0 }

//go:wasmexport proxy_on_vm_start
func onVMStart(context, size uint32) uint32 { return 1 }

//go:wasmexport proxy_on_configure
func onConfigure(context, size uint32) uint32 { return 1 }

//go:wasmexport proxy_on_context_create
func onContextCreate(context, parent uint32) {}

//go:wasmexport proxy_on_request_headers
func onRequestHeaders(context, headers, end uint32) uint32 {
	if requests++; requests == 2 {
		panic("the second request")
	}
	return 0
}

//go:wasmexport proxy_on_done
func onDone(context uint32) uint32 { return 1 }

//go:wasmexport proxy_on_delete
func onDelete(context uint32) {}
