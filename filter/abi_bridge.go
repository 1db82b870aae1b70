//go:build wasip1

package main

import (
	"errors"
	"math"
	"strconv"
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// What one VM has: the memory that the host writes into, the contexts that it
// has made, what is held of images and of unfinished things; and the metrics (metrics.go). A VM has several
// plugins where several filters use the module, and for a while after a change of
// configuration.
var (
	memory     arena
	contexts   = newContextTable(proxywasm.LogWarn)
	images     = newImageMemory()
	unfinished = ledger{bytesMax: unfinishedBytesMax}
)

// vmContext makes the contexts of plugins. Those of streams are not the SDK's:
// its callbacks look each up in several tables, some of them more than once, and
// a stream has a handful of callbacks that must cost next to nothing.
type vmContext struct{ types.DefaultVMContext }

func (vmContext) OnVMStart(int) types.OnVMStartStatus { return types.OnVMStartStatusOK }

func (vmContext) NewPluginContext(id uint32) types.PluginContext {
	return &pluginContext{id: id}
}

// pluginContext starts a plugin.
type pluginContext struct {
	types.DefaultPluginContext
	id uint32
}

func (c *pluginContext) OnPluginStart(size int) types.OnPluginStartStatus {
	var configuration []byte
	if size > 0 {
		var err error
		if configuration, err = proxywasm.GetPluginConfiguration(); err != nil {
			proxywasm.LogError("the configuration cannot be read: " + err.Error())
			return types.OnPluginStartStatusFailed
		}
	}
	p := startPlugin(bridge{plugin: c.id}, configuration)
	if p != nil {
		p.images, p.ledger = images, &unfinished
	}
	contexts.plugins[c.id] = p
	return types.OnPluginStartStatus(p != nil)
}

// bridge is the Host of one stream, or of a plugin that starts: stream is 0 then.
type bridge struct{ plugin, stream uint32 }

// The streams' part of the bridge goes past the SDK's functions, which make a
// copy or a few pieces of garbage in each call: nothing, for a plugin that edits
// headers, but much of what a small request costs here.

// hostData and hostSize are where the host says what it has written. Variables
// of a call's own would be made on the heap.
var (
	hostData unsafe.Pointer
	hostSize int
)

// bodies are the ABI's numbers by Body.
var bodies = [...]uint32{RequestBody: 0, ResponseBody: 1, CalloutBody: 4}

func (bridge) Log(level Level, text string) {
	switch level {
	case Info:
		proxywasm.LogInfo(text)
	case Warn:
		proxywasm.LogWarn(text)
	case Error:
		proxywasm.LogError(text)
	default:
		proxywasm.LogCritical(text)
	}
}

// Now asks for the one clock; package time would ask for the monotonic one, too.
func (bridge) Now() int64 {
	importClockTimeGet(realtimeClock, 1, unsafe.Pointer(&clock))
	return clock
}

// clock is where the host writes the time.
var clock int64

const realtimeClock = 0

// calloutHeaders is the ABI's number for the headers of the answer to a callout.
// Those of a stream's maps are the values of Map.
const calloutHeaders = 6

func (bridge) Headers(m Map) [][2]string { return readHeaders(uint32(m)) }

// readHeaders reads a header map, nil when the host has none.
func readHeaders(m uint32) [][2]string {
	hostData, hostSize = nil, 0
	if importGetHeaderMapPairs(m, unsafe.Pointer(&hostData), unsafe.Pointer(&hostSize)) != statusOK {
		return nil
	}
	b, _ := memory.takeValue(hostSize)
	return readPairs(b)
}

func (bridge) SetHeader(m Map, name, value string) error {
	return sdkStatusToError(importReplaceHeaderMapValue(uint32(m), unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)),
		unsafe.Pointer(unsafe.StringData(value)), uint32(len(value))))
}

func (bridge) RemoveHeader(m Map, name string) error {
	status := importRemoveHeaderMapValue(uint32(m), unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)))
	if status == statusNotFound {
		return nil
	}
	return sdkStatusToError(status)
}

func (bridge) ReadBody(b Body, size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	memory.expectBody()
	got, err := copyBody(b, size)
	body, ok := memory.takeBody(got)
	return body, wholeBody(ok, got, size, err)
}

// copyBody lets the host copy the first size bytes of a body to where the arena
// wants them. got is how many it says that it has copied.
func copyBody(b Body, size int) (got int, err error) {
	hostData, hostSize = nil, 0
	err = sdkStatusToError(importGetBufferBytes(bodies[b], 0, uint32(size), unsafe.Pointer(&hostData), unsafe.Pointer(&hostSize)))
	hostData = nil
	return hostSize, err
}

// wholeBody is the error of a body that did not come, or not as a whole.
func wholeBody(ok bool, got, want int, err error) error {
	if err == nil && (!ok || got != want) {
		return errors.New("the host gave " + strconv.Itoa(got) + " of " + strconv.Itoa(want) + " bytes")
	}
	return err
}

func (bridge) ReleaseBody(body []byte) { memory.release(body) }

func (bridge) TakeBody(b Body, size int) ([]byte, error) {
	got, err := copyBody(b, size)
	body, ok := memory.takeValue(got)
	return body, wholeBody(ok, got, size, err)
}

func (bridge) ReplaceBody(b Body, data []byte) error { return putBody(b, 0, math.MaxInt32, data) }

func (bridge) AppendBody(b Body, data []byte) error { return putBody(b, math.MaxInt32, 0, data) }

// putBody puts data in the place of size bytes of a body, from start on.
func putBody(b Body, start, size uint32, data []byte) error {
	return sdkStatusToError(importSetBufferBytes(bodies[b], start, size, unsafe.Pointer(unsafe.SliceData(data)), uint32(len(data))))
}

func (bridge) Property(path ...string) (string, bool) {
	value, err := proxywasm.GetProperty(path)
	return string(value), err == nil
}

func (bridge) SetProperty(path string, value []byte) error {
	return sdkStatusToError(importSetProperty(unsafe.Pointer(unsafe.StringData(path)), uint32(len(path)),
		unsafe.Pointer(unsafe.SliceData(value)), uint32(len(value))))
}

func (bridge) Reply(status int, headers [][2]string, body []byte) error {
	return proxywasm.SendHttpResponse(uint32(status), headers, body, noGRPCStatus)
}

func (bridge) Reset() error { return sdkStatusToError(importCloseStream(downstream)) }

// downstream is the ABI's number for the direction of a stream that the client is
// at the end of. Resetting it resets both.
const downstream = 0

// noGRPCStatus says that a reply is none to a gRPC request.
const noGRPCStatus = -1

func (bridge) ResumeRequest() error { return proxywasm.ResumeHttpRequest() }

func (bridge) ResumeResponse() error { return proxywasm.ResumeHttpResponse() }

func (b bridge) Enter() error {
	return sdkStatusToError(importSetEffectiveContext(b.stream))
}

// Tick is for the plugin of the stream that host calls work on, which is this one.
func (bridge) Tick(periodMs int) error {
	return sdkStatusToError(importSetTickPeriod(uint32(periodMs)))
}

func (b bridge) Call(cluster string, headers [][2]string, timeoutMs int, done func(CallResult)) error {
	pairs, none := appendPairs(nil, headers), appendPairs(nil, nil)
	var call uint32
	status := importHTTPCall(unsafe.Pointer(unsafe.StringData(cluster)), uint32(len(cluster)),
		unsafe.Pointer(unsafe.SliceData(pairs)), uint32(len(pairs)), nil, 0,
		unsafe.Pointer(unsafe.SliceData(none)), uint32(len(none)), uint32(timeoutMs), unsafe.Pointer(&call))
	if status != statusOK {
		return sdkStatusToError(status)
	}
	contexts.beginCall(b.plugin, call, func(size int) {
		// The callback is the plugin's. A stream that has ended is no longer there
		// to be entered, and done will not ask for it.
		if contexts.streams[b.stream] != nil {
			importSetEffectiveContext(b.stream)
		}
		if size == noAnswer {
			done(CallResult{})
			return
		}
		done(callResult(size))
	})
	return nil
}

// callResult is the answer to the callout whose callback is running.
func callResult(size int) CallResult {
	if size == noAnswer {
		return CallResult{}
	}
	pairs := readHeaders(calloutHeaders)
	status, err := strconv.Atoi(lookup(pairs, ":status"))
	if err != nil {
		return CallResult{}
	}
	return CallResult{Status: status, Headers: pairs, Size: size}
}

// Kinds of metrics.
const (
	counter   = 0
	histogram = 2
)

// define defines a metric at its first use. The SDK's own functions panic when
// the host refuses.
func define(kind uint32, m *Metric) bool {
	if !m.defined && !m.refused {
		status := importDefineMetric(kind, unsafe.Pointer(unsafe.StringData(m.name)), uint32(len(m.name)), unsafe.Pointer(&m.id))
		if m.defined = status == statusOK; !m.defined {
			m.refuse("define the metric ")
		}
	}
	return m.defined
}

// refuse notes that the host will not have a metric, and says so once.
func (m *Metric) refuse(what string) {
	if !m.refused {
		m.refused = true
		proxywasm.LogWarn("the host would not " + what + m.name)
	}
}

func (bridge) Count(m *Metric, n int64) {
	if define(counter, m) && importIncrementMetric(m.id, n) != statusOK {
		m.refuse("count ")
	}
}

func (bridge) Observe(m *Metric, value int64) {
	if define(histogram, m) && importRecordMetric(m.id, uint64(max(value, 0))) != statusOK {
		m.refuse("record ")
	}
}
