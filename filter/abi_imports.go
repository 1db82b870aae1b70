//go:build wasip1

package main

import "unsafe"

// The proxy-wasm host calls that are used (ABI 0.2.0). Pointers and sizes are
// 32 bits wide. Results are written through pointers: Go's pointers and ints
// have 64 bits even here, and because WebAssembly is little-endian a zeroed
// variable of theirs reads back right.

//go:wasmimport env proxy_log
func importLog(level uint32, text unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_get_property
func importGetProperty(path unsafe.Pointer, pathSize uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_set_property
func importSetProperty(path unsafe.Pointer, pathSize uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_send_local_response
func importSendLocalResponse(status uint32, details unsafe.Pointer, detailsSize uint32, body unsafe.Pointer, bodySize uint32,
	headers unsafe.Pointer, headersSize uint32, grpcStatus int32) uint32

//go:wasmimport env proxy_get_header_map_pairs
func importGetHeaderMapPairs(m uint32, pairs, pairsSize unsafe.Pointer) uint32

//go:wasmimport env proxy_replace_header_map_value
func importReplaceHeaderMapValue(m uint32, key unsafe.Pointer, keySize uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_remove_header_map_value
func importRemoveHeaderMapValue(m uint32, key unsafe.Pointer, keySize uint32) uint32

//go:wasmimport env proxy_get_buffer_bytes
func importGetBufferBytes(b, start, length uint32, data, dataSize unsafe.Pointer) uint32

//go:wasmimport env proxy_set_buffer_bytes
func importSetBufferBytes(b, start, length uint32, data unsafe.Pointer, dataSize uint32) uint32

//go:wasmimport env proxy_continue_stream
func importContinueStream(stream uint32) uint32

//go:wasmimport env proxy_close_stream
func importCloseStream(stream uint32) uint32

//go:wasmimport env proxy_http_call
func importHTTPCall(cluster unsafe.Pointer, clusterSize uint32, headers unsafe.Pointer, headersSize uint32,
	body unsafe.Pointer, bodySize uint32, trailers unsafe.Pointer, trailersSize uint32, timeoutMs uint32, call unsafe.Pointer) uint32

//go:wasmimport env proxy_set_effective_context
func importSetEffectiveContext(id uint32) uint32

//go:wasmimport env proxy_set_tick_period_milliseconds
func importSetTickPeriod(ms uint32) uint32

//go:wasmimport env proxy_define_metric
func importDefineMetric(kind uint32, name unsafe.Pointer, nameSize uint32, metric unsafe.Pointer) uint32

//go:wasmimport env proxy_increment_metric
func importIncrementMetric(metric uint32, offset int64) uint32

//go:wasmimport env proxy_record_metric
func importRecordMetric(metric uint32, value uint64) uint32

// The clock of WASI, as Go's runtime imports it.
//
//go:wasmimport wasi_snapshot_preview1 clock_time_get
func importClockTimeGet(id uint32, precision uint64, ns unsafe.Pointer) uint32
