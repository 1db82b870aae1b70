//go:build wasip1

package main

import "unsafe"

// sdkInterface mirrors the SDK's internal interface of host calls, method for
// method: its types are unsigned 32-bit numbers under other names, so that a
// value of ours is laid out like one of theirs.
type sdkInterface interface {
	ProxyLog(level uint32, text *byte, size int) uint32
	ProxySetProperty(path *byte, pathSize int, value *byte, valueSize int) uint32
	ProxyGetProperty(path *byte, pathSize int, value **byte, valueSize *int) uint32
	ProxySendLocalResponse(status uint32, details *byte, detailsSize int, body *byte, bodySize int, headers *byte, headersSize int, grpcStatus int32) uint32
	ProxyGetSharedData(key *byte, keySize int, value **byte, valueSize *int, cas *uint32) uint32
	ProxySetSharedData(key *byte, keySize int, value *byte, valueSize int, cas uint32) uint32
	ProxyRegisterSharedQueue(name *byte, nameSize int, queue *uint32) uint32
	ProxyResolveSharedQueue(vm *byte, vmSize int, name *byte, nameSize int, queue *uint32) uint32
	ProxyDequeueSharedQueue(queue uint32, value **byte, valueSize *int) uint32
	ProxyEnqueueSharedQueue(queue uint32, value *byte, valueSize int) uint32
	ProxyGetHeaderMapValue(m uint32, key *byte, keySize int, value **byte, valueSize *int) uint32
	ProxyAddHeaderMapValue(m uint32, key *byte, keySize int, value *byte, valueSize int) uint32
	ProxyReplaceHeaderMapValue(m uint32, key *byte, keySize int, value *byte, valueSize int) uint32
	ProxyContinueStream(stream uint32) uint32
	ProxyCloseStream(stream uint32) uint32
	ProxyRemoveHeaderMapValue(m uint32, key *byte, keySize int) uint32
	ProxyGetHeaderMapPairs(m uint32, pairs **byte, pairsSize *int) uint32
	ProxySetHeaderMapPairs(m uint32, pairs *byte, pairsSize int) uint32
	ProxyGetBufferBytes(b uint32, start, length int, data **byte, dataSize *int) uint32
	ProxySetBufferBytes(b uint32, start, length int, data *byte, dataSize int) uint32
	ProxyHttpCall(cluster *byte, clusterSize int, headers *byte, headersSize int, body *byte, bodySize int, trailers *byte, trailersSize int, timeoutMs uint32, call *uint32) uint32
	ProxyCallForeignFunction(name *byte, nameSize int, parameter *byte, parameterSize int, result **byte, resultSize *int) uint32
	ProxySetTickPeriodMilliseconds(period uint32) uint32
	ProxySetEffectiveContext(id uint32) uint32
	ProxyDone() uint32
	ProxyDefineMetric(kind uint32, name *byte, nameSize int, metric *uint32) uint32
	ProxyIncrementMetric(metric uint32, offset int64) uint32
	ProxyRecordMetric(metric uint32, value uint64) uint32
	ProxyGetMetric(metric uint32, value *uint64) uint32
}

//go:linkname sdkRegisterHost github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.RegisterMockWasmHost
func sdkRegisterHost(host sdkInterface) (release func())

//go:linkname sdkStatusToError github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.StatusToError
func sdkStatusToError(status uint32) error

// Statuses of the ABI.
const (
	statusOK            = 0
	statusNotFound      = 1
	statusUnimplemented = 12
)

// sdkHost carries over to the imports the host calls that this module makes by
// way of the SDK. The others the bridge makes itself, or nobody.
type sdkHost struct{}

func pointer(p *byte) unsafe.Pointer { return unsafe.Pointer(p) }

func (sdkHost) ProxyLog(level uint32, text *byte, size int) uint32 {
	return importLog(level, pointer(text), uint32(size))
}

func (sdkHost) ProxyGetProperty(path *byte, pathSize int, value **byte, valueSize *int) uint32 {
	return importGetProperty(pointer(path), uint32(pathSize), unsafe.Pointer(value), unsafe.Pointer(valueSize))
}

func (sdkHost) ProxySendLocalResponse(status uint32, details *byte, detailsSize int, body *byte, bodySize int,
	headers *byte, headersSize int, grpcStatus int32) uint32 {
	return importSendLocalResponse(status, pointer(details), uint32(detailsSize), pointer(body), uint32(bodySize),
		pointer(headers), uint32(headersSize), grpcStatus)
}

func (sdkHost) ProxyGetBufferBytes(b uint32, start, length int, data **byte, dataSize *int) uint32 {
	return importGetBufferBytes(b, uint32(start), uint32(length), unsafe.Pointer(data), unsafe.Pointer(dataSize))
}

func (sdkHost) ProxyContinueStream(stream uint32) uint32 { return importContinueStream(stream) }

func (sdkHost) ProxySetProperty(*byte, int, *byte, int) uint32          { return statusUnimplemented }
func (sdkHost) ProxyGetHeaderMapPairs(uint32, **byte, *int) uint32      { return statusUnimplemented }
func (sdkHost) ProxySetHeaderMapPairs(uint32, *byte, int) uint32        { return statusUnimplemented }
func (sdkHost) ProxySetBufferBytes(uint32, int, int, *byte, int) uint32 { return statusUnimplemented }
func (sdkHost) ProxyHttpCall(*byte, int, *byte, int, *byte, int, *byte, int, uint32, *uint32) uint32 {
	return statusUnimplemented
}
func (sdkHost) ProxySetEffectiveContext(uint32) uint32               { return statusUnimplemented }
func (sdkHost) ProxyDefineMetric(uint32, *byte, int, *uint32) uint32 { return statusUnimplemented }
func (sdkHost) ProxyIncrementMetric(uint32, int64) uint32            { return statusUnimplemented }
func (sdkHost) ProxyRecordMetric(uint32, uint64) uint32              { return statusUnimplemented }
func (sdkHost) ProxyGetSharedData(*byte, int, **byte, *int, *uint32) uint32 {
	return statusUnimplemented
}
func (sdkHost) ProxySetSharedData(*byte, int, *byte, int, uint32) uint32 { return statusUnimplemented }
func (sdkHost) ProxyRegisterSharedQueue(*byte, int, *uint32) uint32      { return statusUnimplemented }
func (sdkHost) ProxyDequeueSharedQueue(uint32, **byte, *int) uint32      { return statusUnimplemented }
func (sdkHost) ProxyEnqueueSharedQueue(uint32, *byte, int) uint32        { return statusUnimplemented }
func (sdkHost) ProxyAddHeaderMapValue(uint32, *byte, int, *byte, int) uint32 {
	return statusUnimplemented
}
func (sdkHost) ProxyCloseStream(uint32) uint32 { return statusUnimplemented }
func (sdkHost) ProxyGetHeaderMapValue(uint32, *byte, int, **byte, *int) uint32 {
	return statusUnimplemented
}
func (sdkHost) ProxyReplaceHeaderMapValue(uint32, *byte, int, *byte, int) uint32 {
	return statusUnimplemented
}
func (sdkHost) ProxyRemoveHeaderMapValue(uint32, *byte, int) uint32 { return statusUnimplemented }
func (sdkHost) ProxySetTickPeriodMilliseconds(uint32) uint32        { return statusUnimplemented }
func (sdkHost) ProxyDone() uint32                                   { return statusUnimplemented }
func (sdkHost) ProxyGetMetric(uint32, *uint64) uint32               { return statusUnimplemented }
func (sdkHost) ProxyResolveSharedQueue(*byte, int, *byte, int, *uint32) uint32 {
	return statusUnimplemented
}
func (sdkHost) ProxyCallForeignFunction(*byte, int, *byte, int, **byte, *int) uint32 {
	return statusUnimplemented
}

// keepMethods is always false, which the compiler cannot know. The linker
// drops methods that nobody calls, and does not see that the SDK calls these
// through an interface of its own: the branch that is never taken keeps them.
var keepMethods bool

func registerHost() {
	var h sdkInterface = sdkHost{}
	if keepMethods {
		callEveryMethod(h)
	}
	// The SDK guards its host with a lock that tests hold while they run. A VM
	// holds it for ever.
	_ = sdkRegisterHost(h)
}

func callEveryMethod(h sdkInterface) {
	var b *byte
	var n int
	var id uint32
	var value uint64
	h.ProxyLog(0, b, n)
	h.ProxySetProperty(b, n, b, n)
	h.ProxyGetProperty(b, n, &b, &n)
	h.ProxySendLocalResponse(0, b, n, b, n, b, n, 0)
	h.ProxyGetSharedData(b, n, &b, &n, &id)
	h.ProxySetSharedData(b, n, b, n, 0)
	h.ProxyRegisterSharedQueue(b, n, &id)
	h.ProxyResolveSharedQueue(b, n, b, n, &id)
	h.ProxyDequeueSharedQueue(id, &b, &n)
	h.ProxyEnqueueSharedQueue(id, b, n)
	h.ProxyGetHeaderMapValue(0, b, n, &b, &n)
	h.ProxyAddHeaderMapValue(0, b, n, b, n)
	h.ProxyReplaceHeaderMapValue(0, b, n, b, n)
	h.ProxyContinueStream(0)
	h.ProxyCloseStream(0)
	h.ProxyRemoveHeaderMapValue(0, b, n)
	h.ProxyGetHeaderMapPairs(0, &b, &n)
	h.ProxySetHeaderMapPairs(0, b, n)
	h.ProxyGetBufferBytes(0, 0, n, &b, &n)
	h.ProxySetBufferBytes(0, 0, n, b, n)
	h.ProxyHttpCall(b, n, b, n, b, n, b, n, 0, &id)
	h.ProxyCallForeignFunction(b, n, b, n, &b, &n)
	h.ProxySetTickPeriodMilliseconds(0)
	h.ProxySetEffectiveContext(0)
	h.ProxyDone()
	h.ProxyDefineMetric(0, b, n, &id)
	h.ProxyIncrementMetric(0, 0)
	h.ProxyRecordMetric(0, 0)
	h.ProxyGetMetric(0, &value)
}
