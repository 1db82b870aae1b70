//go:build wasip1

package guest

import (
	"unsafe"

	"ezat.io/chat-completions/build/bench/loops"
)

//go:wasmimport env proxy_get_header_map_value
func getHeader(m uint32, key unsafe.Pointer, keySize uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_get_buffer_bytes
func getBuffer(b, start, length uint32, data, dataSize unsafe.Pointer) uint32

//go:wasmimport env proxy_set_buffer_bytes
func setBuffer(b, start, length uint32, data unsafe.Pointer, dataSize uint32) uint32

//go:wasmimport env proxy_send_local_response
func sendResponse(status uint32, details unsafe.Pointer, detailsSize uint32, body unsafe.Pointer, bodySize uint32,
	headers unsafe.Pointer, headersSize uint32, grpcStatus int32) uint32

// Of the ABI: the request's headers and body, a place past the end of any
// buffer, and what a callback answers.
const (
	requestHeaders = 0
	requestBody    = 0
	bufferEnd      = 1<<31 - 1
	goOn           = 0
	hold           = 1
)

//go:wasmexport proxy_abi_version_0_2_0
func abiVersion() {}

// last keeps what the host writes into until it has been read.
var last []byte

//go:wasmexport proxy_on_memory_allocate
func allocate(size uint32) unsafe.Pointer {
	last = make([]byte, size)
	return unsafe.Pointer(unsafe.SliceData(last))
}

//go:wasmexport proxy_on_vm_start
func onVMStart(_, _ uint32) uint32 { return 1 }

//go:wasmexport proxy_on_configure
func onConfigure(_, _ uint32) uint32 { return 1 }

//go:wasmexport proxy_on_context_create
func onContextCreate(_, _ uint32) {}

//go:wasmexport proxy_on_request_headers
func onRequestHeaders(_, _, _ uint32) uint32 { return hold }

//go:wasmexport proxy_on_request_body
func onRequestBody(_, size, end uint32) uint32 {
	if end == 0 {
		return hold
	}
	answer := Run(header(ModeHeader), body(size))
	sendResponse(200, nil, 0, pointer(answer), uint32(len(answer)), nil, 0, -1)
	return hold
}

func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func header(name string) string {
	// Go's pointers and ints have 64 bits; the host writes 32.
	var value, size uint64
	if getHeader(requestHeaders, unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), unsafe.Pointer(&value), unsafe.Pointer(&size)) != 0 {
		return ""
	}
	return string(last[:size])
}

func body(size uint32) []byte {
	var data, n uint64
	if getBuffer(requestBody, 0, size, unsafe.Pointer(&data), unsafe.Pointer(&n)) != 0 {
		panic("the host has no body")
	}
	b := loops.Padded(last[:n])
	last = nil
	return b
}

// Host puts pieces into the host's buffer, as the filter does: the first one of
// each turn replaces what is there.
type Host struct{ begun bool }

// Begin begins a turn.
func (h *Host) Begin() { h.begun = false }

// Put puts one piece.
func (h *Host) Put(piece []byte) {
	start, length := uint32(bufferEnd), uint32(0)
	if !h.begun {
		start, length, h.begun = 0, bufferEnd, true
	}
	if setBuffer(requestBody, start, length, pointer(piece), uint32(len(piece))) != 0 {
		panic("the host refuses a piece")
	}
}
