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

// What one VM has: the memory that the host writes into, the ids it has made,
// the streams that have not ended, what it holds of images, and the metrics it
// has defined. A VM has several plugins where several filters use the module, and
// for a while after a change of configuration.
var (
	memory    arena
	contexts  = newContextTable(proxywasm.LogWarn)
	exchanges = map[uint32]*exchange{}
	images    imageMemory
	metrics   = map[string]uint32{}
)

// vmContext makes the contexts of plugins.
type vmContext struct{ types.DefaultVMContext }

func (vmContext) OnVMStart(int) types.OnVMStartStatus { return types.OnVMStartStatusOK }

func (vmContext) NewPluginContext(id uint32) types.PluginContext {
	return &pluginContext{id: id}
}

// pluginContext makes the contexts of streams.
type pluginContext struct {
	types.DefaultPluginContext
	id     uint32
	plugin *plugin
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
	c.plugin = startPlugin(bridge{plugin: c.id}, configuration)
	if c.plugin != nil {
		c.plugin.images = &images
	}
	return types.OnPluginStartStatus(c.plugin != nil)
}

func (c *pluginContext) NewHttpContext(id uint32) types.HttpContext {
	x := c.plugin.newExchange(bridge{plugin: c.id, stream: id}, id)
	exchanges[id] = x
	return &streamContext{x}
}

// streamContext carries the SDK's phases to an exchange.
type streamContext struct{ exchange *exchange }

func (c *streamContext) OnHttpRequestHeaders(_ int, end bool) types.Action {
	return types.Action(c.exchange.RequestHeaders(end))
}

func (c *streamContext) OnHttpRequestBody(size int, end bool) types.Action {
	return types.Action(c.exchange.RequestBody(size, end))
}

func (c *streamContext) OnHttpRequestTrailers(int) types.Action {
	return types.Action(c.exchange.RequestTrailers())
}

func (c *streamContext) OnHttpResponseHeaders(_ int, end bool) types.Action {
	return types.Action(c.exchange.ResponseHeaders(end))
}

func (c *streamContext) OnHttpResponseBody(size int, end bool) types.Action {
	return types.Action(c.exchange.ResponseBody(size, end))
}

func (c *streamContext) OnHttpResponseTrailers(int) types.Action {
	return types.Action(c.exchange.ResponseTrailers())
}

func (c *streamContext) OnHttpStreamDone() { endStream(c.exchange.id) }

// endStream tells an exchange, once, that its stream has ended. Not every host
// says so before it deletes the stream.
func endStream(id uint32) {
	if x, ok := exchanges[id]; ok {
		delete(exchanges, id)
		x.Done()
	}
}

// bridge is the Host of one stream, or of a plugin that starts: stream is 0 then.
type bridge struct{ plugin, stream uint32 }

// The SDK's functions, by header map and by body.
var (
	getHeader = [...]func(string) (string, error){
		proxywasm.GetHttpRequestHeader, proxywasm.GetHttpRequestTrailer,
		proxywasm.GetHttpResponseHeader, proxywasm.GetHttpResponseTrailer}
	getHeaders = [...]func() ([][2]string, error){
		proxywasm.GetHttpRequestHeaders, proxywasm.GetHttpRequestTrailers,
		proxywasm.GetHttpResponseHeaders, proxywasm.GetHttpResponseTrailers}
	setHeader = [...]func(string, string) error{
		proxywasm.ReplaceHttpRequestHeader, proxywasm.ReplaceHttpRequestTrailer,
		proxywasm.ReplaceHttpResponseHeader, proxywasm.ReplaceHttpResponseTrailer}
	removeHeader = [...]func(string) error{
		proxywasm.RemoveHttpRequestHeader, proxywasm.RemoveHttpRequestTrailer,
		proxywasm.RemoveHttpResponseHeader, proxywasm.RemoveHttpResponseTrailer}
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

func (bridge) Header(m Map, name string) string {
	value, err := getHeader[m](name)
	if err != nil {
		return ""
	}
	return value
}

func (bridge) Headers(m Map) [][2]string {
	pairs, err := getHeaders[m]()
	if err != nil {
		return nil
	}
	return pairs
}

func (bridge) SetHeader(m Map, name, value string) error { return setHeader[m](name, value) }

func (bridge) RemoveHeader(m Map, name string) error {
	if err := removeHeader[m](name); err != nil && !errors.Is(err, types.ErrorStatusNotFound) {
		return err
	}
	return nil
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
		if contexts.kinds[b.stream] == streamKind {
			(sdkHost{}).ProxySetEffectiveContext(b.stream)
		}
		done(callResult(size))
	})
	return nil
}

// callResult is the answer to the callout whose callback is running.
func callResult(size int) CallResult {
	pairs, err := proxywasm.GetHttpCallResponseHeaders()
	if err != nil {
		return CallResult{}
	}
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
