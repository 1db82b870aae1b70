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
// and the metrics it has defined.
var (
	memory   arena
	contexts = newContextTable(proxywasm.LogWarn)
	metrics  = map[string]uint32{}
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
	return types.OnPluginStartStatus(c.plugin != nil)
}

func (c *pluginContext) NewHttpContext(id uint32) types.HttpContext {
	return &streamContext{c.plugin.newExchange(bridge{plugin: c.id}, id)}
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

func (c *streamContext) OnHttpStreamDone() { c.exchange.Done() }

// bridge is the Host of a VM: the host calls work on the stream whose callback
// is running.
type bridge struct{ plugin uint32 }

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
	getBody     = [...]func(start, size int) ([]byte, error){proxywasm.GetHttpRequestBody, proxywasm.GetHttpResponseBody}
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
	switch {
	case err != nil:
		return nil, err
	case !ok || len(data) != size:
		return nil, errors.New("the host gave " + strconv.Itoa(len(data)) + " of " + strconv.Itoa(size) + " bytes")
	}
	return body, nil
}

func (bridge) ReleaseBody(body []byte) { memory.release(body) }

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

func (bridge) Resume() error { return proxywasm.ResumeHttpResponse() }

func (b bridge) Call(cluster string, headers [][2]string, timeoutMs int, done func(CallResult)) error {
	call, err := proxywasm.DispatchHttpCall(cluster, headers, nil, nil, uint32(timeoutMs), func(_, size, _ int) {
		result := b.callResult(size)
		defer memory.release(result.Body)
		done(result)
	})
	if err == nil {
		contexts.beginCall(b.plugin, call)
	}
	return err
}

// callResult reads the answer to a callout. One whose body cannot be read
// counts as failed.
func (bridge) callResult(size int) CallResult {
	pairs, err := proxywasm.GetHttpCallResponseHeaders()
	if err != nil {
		return CallResult{}
	}
	status, err := strconv.Atoi(lookup(pairs, ":status"))
	if err != nil || size == 0 {
		return CallResult{Status: status}
	}
	memory.expectBody()
	data, err := proxywasm.GetHttpCallResponseBody(0, size)
	body, ok := memory.takeBody(len(data))
	if err != nil || !ok || len(data) != size {
		return CallResult{}
	}
	return CallResult{Status: status, Body: body}
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
