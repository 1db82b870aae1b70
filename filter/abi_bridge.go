//go:build wasip1

package main

import (
	"errors"
	"strconv"
	"time"
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// What one VM has: the memory that the host writes into, the contexts that it
// has made, what is held of images, and the metrics that have been defined. A VM
// has several plugins where several filters use the module, and for a while after
// a change of configuration.
var (
	memory   arena
	contexts = newContextTable(proxywasm.LogWarn)
	images   imageMemory
	metrics  = map[string]uint32{}
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
		p.images = &images
	}
	contexts.plugins[c.id] = p
	return types.OnPluginStartStatus(p != nil)
}

// bridge is the Host of one stream, or of a plugin that starts: stream is 0 then.
type bridge struct{ plugin, stream uint32 }

// The SDK's functions, by body.
var (
	getBody     = [...]func(start, size int) ([]byte, error){proxywasm.GetHttpRequestBody, proxywasm.GetHttpResponseBody, proxywasm.GetHttpCallResponseBody}
	replaceBody = [...]func([]byte) error{proxywasm.ReplaceHttpRequestBody, proxywasm.ReplaceHttpResponseBody}
	appendBody  = [...]func([]byte) error{proxywasm.AppendHttpRequestBody, proxywasm.AppendHttpResponseBody}
)

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

func (bridge) Now() int64 { return time.Now().UnixNano() }

// calloutHeaders is the ABI's number for the headers of the answer to a callout.
// Those of a stream's maps are the values of Map.
const calloutHeaders = 6

func (bridge) Headers(m Map) [][2]string { return readHeaders(uint32(m)) }

// readHeaders reads a header map, nil when the host has none.
func readHeaders(m uint32) [][2]string {
	var data *byte
	var size int
	if (sdkHost{}).ProxyGetHeaderMapPairs(m, &data, &size) != statusOK {
		return nil
	}
	b, _ := memory.takeValue(size)
	return readPairs(b)
}

func (bridge) SetHeaders(m Map, pairs [][2]string) error {
	b := appendPairs(memory.takePairs(), pairs)
	status := (sdkHost{}).ProxySetHeaderMapPairs(uint32(m), unsafe.SliceData(b), len(b))
	memory.releasePairs(b)
	return sdkStatusToError(status)
}

func (bridge) ReadBody(b Body, size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	memory.expectBody()
	data, err := getBody[b](0, size)
	body, ok := memory.takeBody(len(data))
	if err == nil && (!ok || len(data) != size) {
		err = shortBody(len(data), size)
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}

func (bridge) ReleaseBody(body []byte) { memory.release(body) }

func (bridge) TakeBody(b Body, size int) ([]byte, error) {
	data, err := getBody[b](0, size)
	body, ok := memory.takeValue(len(data))
	if err == nil && (!ok || len(data) != size) {
		err = shortBody(len(data), size)
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}

func shortBody(got, want int) error {
	return errors.New("the host gave " + strconv.Itoa(got) + " of " + strconv.Itoa(want) + " bytes")
}

func (bridge) ReplaceBody(b Body, data []byte) error { return replaceBody[b](data) }

func (bridge) AppendBody(b Body, data []byte) error { return appendBody[b](data) }

func (bridge) Property(path ...string) (string, bool) {
	value, err := proxywasm.GetProperty(path)
	return string(value), err == nil
}

func (bridge) SetProperty(path string, value []byte) error {
	return proxywasm.SetProperty([]string{path}, value)
}

func (bridge) Reply(status int, headers [][2]string, body []byte) error {
	const noGRPCStatus = -1
	return proxywasm.SendHttpResponse(uint32(status), headers, body, noGRPCStatus)
}

func (bridge) ResumeRequest() error { return proxywasm.ResumeHttpRequest() }

func (bridge) ResumeResponse() error { return proxywasm.ResumeHttpResponse() }

func (b bridge) Enter() error {
	return sdkStatusToError((sdkHost{}).ProxySetEffectiveContext(b.stream))
}

func (b bridge) Call(cluster string, headers [][2]string, timeoutMs int, done func(CallResult)) error {
	pairs, none := appendPairs(nil, headers), appendPairs(nil, nil)
	var call uint32
	status := (sdkHost{}).ProxyHttpCall(unsafe.StringData(cluster), len(cluster), unsafe.SliceData(pairs), len(pairs), nil, 0,
		unsafe.SliceData(none), len(none), uint32(timeoutMs), &call)
	if status != statusOK {
		return sdkStatusToError(status)
	}
	contexts.beginCall(b.plugin, call, func(size int) {
		// The callback is the plugin's. A stream that has ended is no longer there
		// to be entered, and done will not ask for it.
		if contexts.streams[b.stream] != nil {
			(sdkHost{}).ProxySetEffectiveContext(b.stream)
		}
		done(callResult(size))
	})
	return nil
}

// callResult is the answer to the callout whose callback is running.
func callResult(size int) CallResult {
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

// metric defines a metric at its first use. The SDK's own functions panic when
// the host refuses.
func (bridge) metric(kind uint32, name string) (id uint32, ok bool) {
	if id, ok := metrics[name]; ok {
		return id, true
	}
	if status := (sdkHost{}).ProxyDefineMetric(kind, unsafe.StringData(name), len(name), &id); status != statusOK {
		proxywasm.LogWarn("the host would not define the metric " + name)
		return 0, false
	}
	metrics[name] = id
	return id, true
}

func (b bridge) Count(name string, n int64) {
	if id, ok := b.metric(counter, name); ok && (sdkHost{}).ProxyIncrementMetric(id, n) != statusOK {
		proxywasm.LogWarn("the host would not count " + name)
	}
}

func (b bridge) Observe(name string, value int64) {
	if id, ok := b.metric(histogram, name); ok && (sdkHost{}).ProxyRecordMetric(id, uint64(max(value, 0))) != statusOK {
		proxywasm.LogWarn("the host would not record " + name)
	}
}
