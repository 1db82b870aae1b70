//go:build wasip1

package main

import "unsafe"

//go:wasmexport proxy_abi_version_0_2_0
func abiVersion() {}

//go:wasmexport proxy_on_memory_allocate
func allocate(size uint32) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(make([]byte, size)))
}

//go:wasmexport proxy_on_vm_start
func onVMStart(_, _ uint32) uint32 { return 1 }

//go:wasmexport proxy_on_configure
func onConfigure(_, _ uint32) uint32 { return 1 }

//go:wasmexport proxy_on_context_create
func onContextCreate(_, _ uint32) {}
