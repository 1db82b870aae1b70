package harness

import "ezat.io/chat-completions/harness/internal/abi"

// This file is the guest's side of a stream (Envoy's Wasm Context): which
// callbacks it gets, what their results mean, and what it can reach meanwhile.

// create makes the stream's context in the guest.
func (s *Stream) create() {
	if s.guest != nil || s.vm.failure != nil {
		return
	}
	s.guest = s.vm.newContext(s)
	s.vm.streams[s] = true
	s.vm.notify(s.guest, "proxy_on_context_create", uint64(s.guest.id), uint64(s.vm.root.id))
}

// failed answers a stream whose guest is dead, once, with Envoy's 503.
func (s *Stream) failed() bool {
	if s.vm.failure == nil {
		return false
	}
	if !s.failureReplied {
		s.failureReplied = true
		s.sendLocalReply(503, nil, nil, "wasm_fail_stream")
	}
	return true
}

// callback asks the guest about this direction. It returns the raw result and
// whether the result counts: a dead guest, or one that has sent a local reply,
// stops its stream in any case.
func (f *flow) callback(name string, args ...uint64) (result uint64, stopped bool) {
	s := f.s
	if s.failed() {
		return 0, true
	}
	if !s.vm.has(name) {
		return 0, false
	}
	result = s.vm.invoke(s.guest, name, append([]uint64{uint64(s.guest.id)}, args...)...)
	stopped = s.vm.stopNext
	if s.failed() {
		stopped = true
	}
	s.vm.finish()
	return result, stopped
}

func word(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// silent says that the guest is not asked about a response any more.
func (f *flow) silent() bool { return f.response && f.s.failureReplied }

func (f *flow) guestHeaders(end bool) headersStatus {
	name := "proxy_on_response_headers"
	if !f.response {
		name = "proxy_on_request_headers"
		f.s.create()
	} else if f.silent() {
		return headersContinue
	}
	f.shownHeaders, f.s.endOfStream = f.headers, end
	result, stopped := f.callback(name, uint64(len(*f.headers)), word(end))
	status := headersStatusOf(result, f.s.vm.host.config.NoHeadersStopIteration)
	if stopped {
		status = headersStopAllWatermark
	}
	if status == headersContinue {
		f.shownHeaders = nil
	}
	return status
}

// headersStatusOf reads what a headers callback returned. Beside the ABI's two
// actions Envoy knows 3 and 4; 2 is nothing.
func headersStatusOf(result uint64, noStopIteration bool) headersStatus {
	switch {
	case result == 0 || result == 2:
		return headersContinue
	case result == 1 && !noStopIteration:
		return headersStop
	case result == 3:
		return headersStopAllBuffer
	}
	return headersStopAllWatermark
}

func (f *flow) guestData(data *bodyBuffer, end bool) dataStatus {
	if f.silent() {
		return dataContinue
	}
	if f.buffering {
		// The guest sees the held body with the new piece in it.
		f.streaming = false
		f.hold(data)
		if f.s.destroyed {
			return dataBuffer // over the limit: the stream is gone
		}
	}
	f.shownBody, f.s.endOfStream = data, end
	name := "proxy_on_request_body"
	if f.response {
		name = "proxy_on_response_body"
	}
	size := f.s.guestBuffer(f.response).Len()
	result, stopped := f.callback(name, uint64(size), word(end))
	f.buffering = false
	status := dataNoBuffer
	if !stopped && result <= uint64(dataNoBuffer) {
		status = dataStatus(result)
	}
	switch status {
	case dataContinue:
		f.shownBody = nil
	case dataBuffer:
		f.buffering = true
	}
	return status
}

// guestTrailers says whether the trailers stop.
func (f *flow) guestTrailers() (stop bool) {
	if f.silent() {
		return false
	}
	f.shownTrailers = f.trailers
	name := "proxy_on_request_trailers"
	if f.response {
		name = "proxy_on_response_trailers"
	}
	result, stopped := f.callback(name, uint64(len(*f.trailers)))
	if stop = stopped || result != 0; !stop {
		f.shownTrailers = nil
	}
	return stop
}

// guestBuffer is the body that the guest reaches in one direction. Where there
// is none it is empty and cannot be changed.
func (s *Stream) guestBuffer(response bool) guestBody {
	if s == nil {
		return guestBody{}
	}
	f := &s.request
	if response {
		f = &s.response
	}
	if f.buffering {
		return guestBody{f.buffered}
	}
	return guestBody{f.shownBody}
}

// guestBody is a body as the guest sees it, which may be missing.
type guestBody struct{ b *bodyBuffer }

func (g guestBody) Len() int {
	if g.b == nil {
		return 0
	}
	return g.b.Len()
}

func (g guestBody) CopyTo(dst []byte, start int) {
	if g.b != nil {
		g.b.CopyTo(dst, start)
	}
}

func (g guestBody) Replace(start, length uint32, data []byte) abi.Status {
	if g.b == nil {
		return abi.BadArgument
	}
	return g.b.Replace(start, length, data)
}

// readableMap is a map to read; nil when it is not there.
func (s *Stream) readableMap(kind uint32) *Headers {
	if s == nil {
		return nil
	}
	if s.logging {
		return s.loggedMap(kind)
	}
	return s.shownMap(kind)
}

// writableMap is a map to change. Trailers come into being in the callback that
// ends a body without them.
func (s *Stream) writableMap(kind uint32) *Headers {
	if s == nil {
		return nil
	}
	switch kind {
	case abi.RequestTrailers:
		s.request.makeTrailers(decodingData)
	case abi.ResponseTrailers:
		s.response.makeTrailers(encodingData)
	}
	return s.shownMap(kind)
}

func (f *flow) makeTrailers(during phase) {
	if f.trailers == nil && f.shownBody != nil && f.s.endOfStream && f.s.phase&during != 0 {
		f.trailers = &Headers{}
		f.shownTrailers = f.trailers
	}
}

// shownMap is a map of the stream that the guest reaches in this callback.
func (s *Stream) shownMap(kind uint32) *Headers {
	switch kind {
	case abi.RequestHeaders:
		return s.request.shownHeaders
	case abi.RequestTrailers:
		return s.request.shownTrailers
	case abi.ResponseHeaders:
		return s.response.shownHeaders
	case abi.ResponseTrailers:
		return s.response.shownTrailers
	}
	return nil
}

// loggedMap is a map as proxy_on_log finds it: all but the request's trailers.
func (s *Stream) loggedMap(kind uint32) *Headers {
	switch kind {
	case abi.RequestHeaders:
		return s.request.headers
	case abi.ResponseHeaders:
		return s.response.headers
	case abi.ResponseTrailers:
		return s.response.trailers
	}
	return nil
}
