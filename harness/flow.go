package harness

// This file is Envoy's filter manager for a chain of one filter, the guest:
// what pauses, what is buffered, what goes on, and when. The names in comments
// are those of Envoy's source/common/http/filter_manager.cc, whose rules these
// are; testdata holds what a real Envoy made of each.

// iteration is whether a direction goes on behind the guest.
type iteration int

const (
	goesOn            iteration = iota
	stopsSingle                 // StopIteration: headers and bodies still come to the guest
	stopsAllBuffer              // StopAllIterationAndBuffer
	stopsAllWatermark           // StopAllIterationAndWatermark: past the limit reading stops
)

// What a callback decides about headers and trailers.
type headersStatus int

const (
	headersContinue headersStatus = iota
	headersStop
	headersStopAllBuffer
	headersStopAllWatermark
)

// What a callback decides about a piece of a body.
type dataStatus int

const (
	dataContinue  dataStatus = iota
	dataBuffer               // hold it; past the limit the stream fails
	dataWatermark            // hold it; past the limit reading stops
	dataNoBuffer             // drop it
)

// phase says which callback of the filter is under way (FilterCallState).
type phase uint8

const (
	decodingHeaders phase = 1 << iota
	decodingData
	decodingTrailers
	encodingHeaders
	encodingData
	encodingTrailers

	decoding = decodingHeaders | decodingData | decodingTrailers
	encoding = encodingHeaders | encodingData | encodingTrailers
)

// flow is one direction of a stream: the request on its way up, or the response
// on its way down.
type flow struct {
	s        *Stream
	response bool

	headers  *Headers // nil until they have come
	trailers *Headers // nil when there are none
	complete bool     // the source has ended

	iter             iteration
	headersContinued bool // the headers have gone on
	fromCurrent      bool // resuming what was stopped as a whole: the guest sees it first
	ended            bool // the guest has seen the end (end_stream_)
	trailersGone     bool
	buffered         *bodyBuffer
	streaming        bool // past the limit reading stops, instead of an error
	blocked          bool // reading has stopped

	// What the guest can reach (Envoy's Wasm Context).
	shownHeaders  *Headers
	shownTrailers *Headers
	shownBody     *bodyBuffer
	buffering     bool // the body that the guest sees is the held one
}

func (f *flow) stoppedAll() bool { return f.iter == stopsAllBuffer || f.iter == stopsAllWatermark }

// canContinue says whether anything may still go on in this direction.
func (f *flow) canContinue() bool {
	if f.response {
		return !f.s.encodeEnded
	}
	return !f.s.response.complete // local_complete_
}

// enter and leave mark a callback as under way.
func (f *flow) enter(request phase) phase {
	p := request
	if f.response {
		p <<= 3
	}
	f.s.phase |= p
	return p
}

func (f *flow) leave(p phase) { f.s.phase &^= p }

// aborted says whether a local reply, or a reset, has taken this direction over;
// a reply that was prepared during the callback goes out now.
func (f *flow) aborted() bool {
	if f.response {
		return f.s.encoderAborted
	}
	if f.s.decoderAborted {
		f.s.executeReply()
	}
	return f.s.decoderAborted
}

// inHeaders takes headers to the guest and, unless it stops them, on.
func (f *flow) inHeaders(end bool) {
	f.s.touch()
	f.ended = end
	p := f.enter(decodingHeaders)
	status := f.guestHeaders(end)
	f.leave(p)
	if f.aborted() {
		status = headersStop
	}
	switch status {
	case headersContinue:
		f.headersContinued = true
	case headersStop:
		f.iter = stopsSingle
	case headersStopAllBuffer:
		f.iter = stopsAllBuffer
	case headersStopAllWatermark:
		f.iter = stopsAllWatermark
	}
	if status != headersContinue || f.s.destroyed {
		return
	}
	f.nextHeaders(end)
}

// inData takes a piece of a body to the guest and, unless it stops it, on.
func (f *flow) inData(data *bodyBuffer, end bool) {
	f.s.touch()
	if f.s.destroyed || !f.response && f.s.response.complete {
		return // nobody cares for the rest of the request any more
	}
	if f.stoppedAll() {
		f.streaming = f.iter == stopsAllWatermark
		f.hold(data)
		return
	}
	if f.ended {
		return
	}
	hadTrailers := f.trailers != nil
	f.ended = end && !hadTrailers
	p := f.enter(decodingData)
	status := f.guestData(data, f.ended)
	f.leave(p)
	if f.aborted() {
		if !f.response {
			return
		}
		status = dataNoBuffer
	}
	if f.s.destroyed {
		return
	}
	added := !hadTrailers && f.trailers != nil
	if f.afterData(status, data) {
		f.nextData(data, end && !added)
		if added {
			f.nextTrailers()
		}
	}
}

// afterData says whether a piece goes on (commonHandleAfterDataCallback).
func (f *flow) afterData(status dataStatus, data *bodyBuffer) bool {
	if status == dataContinue {
		if f.iter != stopsSingle {
			return true
		}
		f.hold(data)
		f.resume()
		return false
	}
	f.iter = stopsSingle
	switch {
	case status == dataBuffer || status == dataWatermark:
		f.streaming = status == dataWatermark
		f.hold(data)
	case f.complete && f.trailers == nil && f.buffered == nil && !f.s.destroyed:
		// The end is in a piece of no bytes that is dropped: an empty buffer
		// stands for it, so that resuming sends it.
		f.buffered = f.newBuffer()
	}
	return false
}

// inTrailers takes trailers to the guest and, unless it stops them, on.
func (f *flow) inTrailers() {
	f.s.touch()
	if f.s.destroyed || !f.response && f.s.response.complete || f.stoppedAll() {
		return
	}
	p := f.enter(decodingTrailers)
	stop := f.guestTrailers()
	f.ended = true
	f.leave(p)
	if !f.response && f.aborted() {
		stop = true
	}
	if f.s.destroyed {
		return
	}
	switch {
	case stop:
		if f.iter == goesOn {
			f.iter = stopsSingle
		}
	case f.iter == stopsSingle:
		f.resume()
	default:
		f.nextTrailers()
	}
}

// resumeByGuest is proxy_continue_stream.
func (f *flow) resumeByGuest() {
	if f.s.destroyed || !f.canContinue() {
		return
	}
	if f.iter == goesOn {
		// Envoy asserts against this; what its release build does then depends
		// on what has gone on already.
		f.s.vm.host.say(f.s.vm.w.index, Error, "harness: the guest resumes a "+f.name()+" that it has not paused")
		return
	}
	f.buffering = false
	f.resume()
}

func (f *flow) name() string {
	if f.response {
		return "response"
	}
	return "request"
}

// resume lets go on what was held (commonContinue).
func (f *flow) resume() {
	if f.s.destroyed || !f.canContinue() {
		return
	}
	f.fromCurrent = f.stoppedAll()
	f.iter = goesOn
	if !f.headersContinued {
		f.headersContinued = true
		f.nextHeaders(f.complete && f.buffered == nil && f.trailers == nil)
	}
	// Trailers that the guest adds while the body goes on go with the body.
	hadTrailers := f.trailers != nil
	if f.buffered != nil && !f.s.destroyed {
		f.resumeData(f.complete && !hadTrailers)
	}
	if hadTrailers && !f.s.destroyed {
		if f.fromCurrent {
			f.inTrailers()
		} else {
			f.nextTrailers()
		}
	}
	f.fromCurrent = false
}

// resumeData is doData.
func (f *flow) resumeData(end bool) {
	if f.fromCurrent {
		f.inData(f.buffered, end)
		return
	}
	if !f.response && f.s.response.complete {
		return
	}
	f.nextData(f.buffered, end)
}

// hold moves a piece into the buffer of what is held (commonHandleBufferData).
func (f *flow) hold(data *bodyBuffer) {
	if f.buffered == data {
		return
	}
	if f.buffered == nil {
		f.buffered = f.newBuffer()
	}
	f.buffered.move(data)
}

func (f *flow) newBuffer() *bodyBuffer {
	return &bodyBuffer{
		limit:  f.s.vm.host.config.BufferBytesMax,
		onHigh: f.overLimit,
		onLow: func() {
			f.blocked = false
			f.s.unblocked()
		},
	}
}

// overLimit is what a held body past the limit brings on.
func (f *flow) overLimit() {
	switch {
	case f.streaming:
		f.blocked = true
	case f.response:
		f.s.sendLocalReply(500, []byte("Internal Server Error"), nil, "response_payload_too_large")
	default:
		f.s.sendLocalReply(413, []byte("Payload Too Large"), nil, "request_payload_too_large")
	}
}

// nextHeaders hands headers to what comes behind the guest.
func (f *flow) nextHeaders(end bool) {
	if f.response {
		f.s.encodeHeaders(end)
	} else {
		f.s.routeHeaders(end)
	}
}

func (f *flow) nextData(data *bodyBuffer, end bool) {
	if f.response {
		f.s.encodeData(data.take(), end)
	} else {
		f.s.routeData(data.take(), end)
	}
}

func (f *flow) nextTrailers() {
	if f.trailersGone || f.s.destroyed {
		return
	}
	f.trailersGone = true
	if f.response {
		f.s.encodeTrailers()
	} else {
		f.s.routeTrailers()
	}
}
