//go:build wasip1

package main

import "unsafe"

// status is a proxy_status_t.
type status = uint32

//go:wasmimport env proxy_log
func proxyLog(level uint32, data unsafe.Pointer, size uint32) status

//go:wasmimport env proxy_get_property
func proxyGetProperty(path unsafe.Pointer, pathSize uint32, data, size unsafe.Pointer) status

//go:wasmimport env proxy_set_property
func proxySetProperty(path unsafe.Pointer, pathSize uint32, data unsafe.Pointer, size uint32) status

//go:wasmimport env proxy_get_current_time_nanoseconds
func proxyGetCurrentTimeNanoseconds(at unsafe.Pointer) status

//go:wasmimport env proxy_set_tick_period_milliseconds
func proxySetTickPeriodMilliseconds(period uint32) status

//go:wasmimport env proxy_get_buffer_bytes
func proxyGetBufferBytes(kind, start, size uint32, data, length unsafe.Pointer) status

//go:wasmimport env proxy_set_buffer_bytes
func proxySetBufferBytes(kind, start, size uint32, data unsafe.Pointer, length uint32) status

//go:wasmimport env proxy_get_buffer_status
func proxyGetBufferStatus(kind uint32, length, flags unsafe.Pointer) status

//go:wasmimport env proxy_get_header_map_size
func proxyGetHeaderMapSize(kind uint32, size unsafe.Pointer) status

//go:wasmimport env proxy_get_header_map_pairs
func proxyGetHeaderMapPairs(kind uint32, data, size unsafe.Pointer) status

//go:wasmimport env proxy_set_header_map_pairs
func proxySetHeaderMapPairs(kind uint32, data unsafe.Pointer, size uint32) status

//go:wasmimport env proxy_get_header_map_value
func proxyGetHeaderMapValue(kind uint32, key unsafe.Pointer, keySize uint32, data, size unsafe.Pointer) status

//go:wasmimport env proxy_add_header_map_value
func proxyAddHeaderMapValue(kind uint32, key unsafe.Pointer, keySize uint32, data unsafe.Pointer, size uint32) status

//go:wasmimport env proxy_replace_header_map_value
func proxyReplaceHeaderMapValue(kind uint32, key unsafe.Pointer, keySize uint32, data unsafe.Pointer, size uint32) status

//go:wasmimport env proxy_remove_header_map_value
func proxyRemoveHeaderMapValue(kind uint32, key unsafe.Pointer, keySize uint32) status

//go:wasmimport env proxy_continue_stream
func proxyContinueStream(kind uint32) status

//go:wasmimport env proxy_close_stream
func proxyCloseStream(kind uint32) status

//go:wasmimport env proxy_get_status
func proxyGetStatus(code, data, size unsafe.Pointer) status

//go:wasmimport env proxy_send_local_response
func proxySendLocalResponse(code uint32, details unsafe.Pointer, detailsSize uint32, body unsafe.Pointer, bodySize uint32, headers unsafe.Pointer, headersSize uint32, grpc uint32) status

//go:wasmimport env proxy_http_call
func proxyHTTPCall(upstream unsafe.Pointer, upstreamSize uint32, headers unsafe.Pointer, headersSize uint32, body unsafe.Pointer, bodySize uint32, trailers unsafe.Pointer, trailersSize uint32, timeout uint32, id unsafe.Pointer) status

//go:wasmimport env proxy_set_effective_context
func proxySetEffectiveContext(id uint32) status

//go:wasmimport env proxy_done
func proxyDone() status

//go:wasmimport env proxy_set_shared_data
func proxySetSharedData(key unsafe.Pointer, keySize uint32, data unsafe.Pointer, size, cas uint32) status

//go:wasmimport env proxy_get_shared_data
func proxyGetSharedData(key unsafe.Pointer, keySize uint32, data, size, cas unsafe.Pointer) status

//go:wasmimport env proxy_register_shared_queue
func proxyRegisterSharedQueue(name unsafe.Pointer, nameSize uint32, id unsafe.Pointer) status

//go:wasmimport env proxy_resolve_shared_queue
func proxyResolveSharedQueue(vm unsafe.Pointer, vmSize uint32, name unsafe.Pointer, nameSize uint32, id unsafe.Pointer) status

//go:wasmimport env proxy_enqueue_shared_queue
func proxyEnqueueSharedQueue(id uint32, data unsafe.Pointer, size uint32) status

//go:wasmimport env proxy_dequeue_shared_queue
func proxyDequeueSharedQueue(id uint32, data, size unsafe.Pointer) status

//go:wasmimport env proxy_define_metric
func proxyDefineMetric(kind uint32, name unsafe.Pointer, nameSize uint32, id unsafe.Pointer) status

//go:wasmimport env proxy_record_metric
func proxyRecordMetric(id uint32, value uint64) status

//go:wasmimport env proxy_increment_metric
func proxyIncrementMetric(id uint32, delta int64) status

//go:wasmimport env proxy_get_metric
func proxyGetMetric(id uint32, value unsafe.Pointer) status

//go:wasmimport env proxy_call_foreign_function
func proxyCallForeignFunction(name unsafe.Pointer, nameSize uint32, args unsafe.Pointer, argsSize uint32, data, size unsafe.Pointer) status

//go:wasmimport wasi_snapshot_preview1 proc_exit
func procExit(code uint32)

// str returns the address and size of s for a hostcall.
func str(s string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))
}

// result is what the host wrote: an address in guest memory and a size. The
// ABI has 32-bit words, Go's pointers take 64 bits of wasm memory.
type result struct{ data, size uint32 }

// text copies the host's data.
func (r *result) text() string {
	if r.size == 0 {
		return ""
	}
	address := uint64(r.data)
	return string(unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), r.size))
}

// allocated keeps what the host asked for alive until the outermost callback
// returns: nothing else refers to it while the host fills it.
var allocated [][]byte

//go:wasmexport proxy_on_memory_allocate
func onMemoryAllocate(size uint32) unsafe.Pointer {
	if size == 0 {
		size = 1
	}
	b := make([]byte, size)
	allocated = append(allocated, b)
	return unsafe.Pointer(&b[0])
}
