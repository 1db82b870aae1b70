//go:build wasip1

// The script guest does what its plugin configuration says and logs all that
// it sees, so that one module serves every test of the harness, and runs
// unchanged in Envoy to record what is right.
//
// The configuration has one rule a line:
//
//	callback[#n][@path-prefix]: op args; op args; …
//
// callback is the export's name without "proxy_on_". "@" takes streams whose
// path begins so, "#n" the n-th such callback of a stream, counted from 1. The
// first rule that fits is used. Lines that begin with "#" are comments.
// Arguments are words, Go string literals, or a literal and "*n" for n times.
package main

import "strconv"

func main() {}

// rule is one line of the configuration.
type rule struct {
	callback, path string
	nth            int // 0: every call
	ops            [][]string
}

// stream is what the guest remembers of one context.
type stream struct {
	parent uint32
	path   string
	calls  map[string]int
	action uint32 // what the callback under way returns
}

var (
	rules    []rule
	streams  = map[uint32]*stream{}
	callers  = map[uint32]uint32{} // callout id → context that made it
	metrics  = map[string]uint32{} // name → metric id
	queues   = map[string]uint32{} // name → queue id
	depth    int                   // nested callbacks under way
	hoard    [][]byte              // what the op "oom" eats
	answered uint32                // the callout that is being answered
)

func logf(parts ...string) {
	line := ""
	for i, p := range parts {
		if i > 0 {
			line += " "
		}
		line += p
	}
	data, size := str(line)
	proxyLog(2, data, size)
}

func num(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// enter logs a callback and runs the rule that fits it. It returns the action.
func enter(callback string, id uint32, args ...uint32) uint32 {
	depth++
	s := streams[id]
	if s == nil {
		s = &stream{calls: map[string]int{}}
		streams[id] = s
	}
	if callback == "request_headers" {
		s.path, _ = mapGet(0, ":path")
	}
	line := []string{callback}
	for _, a := range args {
		line = append(line, num(a))
	}
	logf(line...)
	s.calls[callback]++
	outer := s.action
	s.action = 0
	run(s, id, find(callback, s))
	action := s.action
	s.action = outer
	if depth--; depth == 0 {
		allocated = nil
	}
	return action
}

// find returns the ops of the first rule that fits.
func find(callback string, s *stream) [][]string {
	for _, r := range rules {
		if r.callback != callback || r.nth != 0 && r.nth != s.calls[callback] {
			continue
		}
		if len(r.path) > len(s.path) || s.path[:len(r.path)] != r.path {
			continue
		}
		return r.ops
	}
	return nil
}

//go:wasmexport proxy_on_context_create
func onContextCreate(id, parent uint32) {
	streams[id] = &stream{parent: parent, calls: map[string]int{}}
	if parent != 0 {
		enter("context_create", id)
	}
}

//go:wasmexport proxy_on_vm_start
func onVMStart(id, size uint32) uint32 { return 1 }

//go:wasmexport proxy_on_configure
func onConfigure(id, size uint32) uint32 {
	var r result
	proxyGetBufferBytes(7, 0, size, ptr(&r.data), ptr(&r.size))
	if err := parse(r.text()); err != "" {
		logf("script:", err)
		return 0
	}
	return 1 - enter("configure", id, size)
}

//go:wasmexport proxy_on_tick
func onTick(id uint32) { enter("tick", id) }

//go:wasmexport proxy_on_request_headers
func onRequestHeaders(id, n, end uint32) uint32 { return enter("request_headers", id, end) }

//go:wasmexport proxy_on_request_body
func onRequestBody(id, size, end uint32) uint32 { return enter("request_body", id, size, end) }

//go:wasmexport proxy_on_request_trailers
func onRequestTrailers(id, n uint32) uint32 { return enter("request_trailers", id, n) }

//go:wasmexport proxy_on_response_headers
func onResponseHeaders(id, n, end uint32) uint32 { return enter("response_headers", id, end) }

//go:wasmexport proxy_on_response_body
func onResponseBody(id, size, end uint32) uint32 { return enter("response_body", id, size, end) }

//go:wasmexport proxy_on_response_trailers
func onResponseTrailers(id, n uint32) uint32 { return enter("response_trailers", id, n) }

//go:wasmexport proxy_on_http_call_response
func onHTTPCallResponse(root, call, headers, size, trailers uint32) {
	answered = call
	failed := uint32(0)
	if headers == 0 {
		failed = 1
	}
	enter("http_call_response", root, failed, size, trailers)
}

//go:wasmexport proxy_on_queue_ready
func onQueueReady(root, queue uint32) { enter("queue_ready", root) }

//go:wasmexport proxy_on_done
func onDone(id uint32) uint32 { return 1 - enter("done", id) }

//go:wasmexport proxy_on_log
func onLog(id uint32) { enter("log", id) }

//go:wasmexport proxy_on_delete
func onDelete(id uint32) {
	enter("delete", id)
	delete(streams, id)
}
