package main

import (
	"strconv"
	"strings"

	"ezat.io/chat-completions/translate"
)

// exchange is one stream: a request and its answer. The bridge calls one
// method per phase, and the method says whether the host goes on or holds. All
// state of a stream is here, and all of it goes with the stream.
//
// The two directions are apart: an upstream may answer before the request is
// complete, and the host may answer in its place at any time, even from inside
// one of our calls to it.
type exchange struct {
	plugin *plugin
	host   Host
	id     uint32

	route     route
	began     int64  // Unix nanoseconds
	requestID string // of the answer; Envoy's until the upstream's is known
	request   requestPhase
	response  responsePhase
	phase     phase // of the callback that is running
	weight    int   // bytes of the ledger

	// requestHeaders are there while a callback needs them. Headers are read anew
	// when they are rewritten: other filters may have changed them, and streams that
	// wait must not hold them in the guest.
	requestHeaders [][2]string

	// What the request leaves behind for the answer.
	key       string // the client's bearer key, like requestHeaders
	pageKey   string // the same, for the further pages of a list
	authority string // sent upstream, for these pages
	session   string // the client's x-ezat-session, like requestHeaders
	cacheOff  bool
	bodySize  int // bytes of the request body so far
	trailers  bool
	worked    int64      // nanoseconds of translation so far
	downloads *downloads // nil but while the phase is requestFetching
	reply     translate.Reply

	// The answer.
	answerHeaders [][2]string // like requestHeaders: see clientPairs
	status        int         // of the host's or upstream's response
	answerSize    int         // bytes of the response body so far
	answerBegan   bool        // a part of the response body has come, maybe an empty one
	local         bool
	held          bool // response headers are here and have not left
	outStatus     int  // the status that has left with them
	stream        *translate.Stream
	firstToken    bool
	list          translate.ModelList
	owed          []byte // what ends a broken answer, and could not be written yet
	recorded      bool
	sentUpstream  bool
}

// requestPhase is where the request stands.
type requestPhase int

const (
	// requestNew: no request headers have been seen.
	requestNew requestPhase = iota
	// requestForeign: not ours. Both directions pass untouched.
	requestForeign
	// requestReading: the body of a chat request is being buffered.
	requestReading
	// requestFetching: the body is whole, and images that it names are being
	// downloaded, or wait for it.
	requestFetching
	// requestBodyless: a GET went up; a body that it may have is dropped.
	requestBodyless
	// requestSent: the translated request went up.
	requestSent
	// requestOver: the answer is decided, what still comes of the body is dropped.
	requestOver
)

// responsePhase is where the response stands.
type responsePhase int

const (
	// responseNew: no response headers have been seen.
	responseNew responsePhase = iota
	// responseOwn: a local reply of ours is on its way. It passes untouched.
	responseOwn
	// responseForeign: not ours to translate.
	responseForeign
	// responseWhole, responseModel, responseList, responseError: the body is
	// being buffered, and translated when it is whole.
	responseWhole
	responseModel
	responseList
	responseError
	// responsePaging: further pages of the list are being fetched.
	responsePaging
	// responseStream: events are translated as they come.
	responseStream
	// responseOver: all that the client gets is out; later bytes are dropped.
	responseOver
)

// phase is what a callback is about, as far as a failure must know: what can
// still be written differs.
type phase int

const (
	// phaseOther is that of every callback but these: nothing of the answer's body
	// can be written.
	phaseOther phase = iota
	phaseRequest
	phaseAnswerBody
	phaseAnswerTrailers
)

// enter begins a callback, and leave ends it: hosts call from inside our calls to
// them.
func (x *exchange) enter(p phase) (before phase) {
	before, x.phase = x.phase, p
	return before
}

// RequestHeaders is the first phase. end says that there is no body.
func (x *exchange) RequestHeaders(end bool) (action Action) {
	defer x.leave(&action, x.enter(phaseRequest))
	if x.request != requestNew {
		return Continue
	}
	if x.plugin == nil {
		// The plugin has not started. Forwarding would send the client's bytes
		// untranslated.
		return x.refuse(translate.Internal(), nil)
	}
	pairs := x.host.Headers(RequestHeaders)
	x.route = findRoute(x.plugin.config.routePrefix, lookup(pairs, ":path"))
	if x.route.endpoint == foreign {
		x.request, x.response = requestForeign, responseForeign
		return Continue
	}
	x.began = x.host.Now()
	x.requestHeaders = pairs
	x.nameRequest(strings.Clone(lookup(pairs, "x-request-id")))
	action = x.ownRequest(end)
	x.requestHeaders, x.key = nil, ""
	return action
}

// ownRequest checks what can be checked before the body: the path, the method,
// the key.
func (x *exchange) ownRequest(end bool) Action {
	if x.route.endpoint == unknownPath {
		return x.refuse(translate.NoRoute(), nil)
	}
	if lookup(x.requestHeaders, ":method") != x.route.method {
		return x.refuse(translate.WrongMethod(), [][2]string{{"allow", x.route.method}})
	}
	if !x.readKey() {
		return x.refuse(translate.MissingKey(), nil)
	}
	if x.route.endpoint == chatCompletions {
		return x.chatHeaders(end)
	}
	return x.modelsHeaders()
}

// readKey reads the client's key from the headers; false when it must be there
// and is not.
func (x *exchange) readKey() bool {
	if x.plugin.config.credentials == gatewayKey {
		return true
	}
	x.key = bearer(lookup(x.requestHeaders, "authorization"))
	return x.key != ""
}

// RequestBody comes with each piece of the body. size is that of all buffered
// bytes, end says that they are all.
func (x *exchange) RequestBody(size int, end bool) (action Action) {
	defer x.leave(&action, x.enter(phaseRequest))
	switch x.request {
	case requestReading:
		return x.chatBody(size, end)
	case requestBodyless:
		action := x.drop(RequestBody, size)
		if action == Pause {
			x.request = requestOver
		}
		return action
	case requestFetching:
		return Pause
	case requestOver:
		x.drop(RequestBody, size)
		return Pause
	}
	return Continue
}

// RequestTrailers ends a body that was not said to be complete.
func (x *exchange) RequestTrailers() (action Action) {
	defer x.leave(&action, x.enter(phaseRequest))
	switch x.request {
	case requestReading:
		x.dropTrailers(RequestTrailers)
		x.trailers = true
		return x.wholeRequest()
	case requestBodyless:
		x.dropTrailers(RequestTrailers)
	case requestFetching, requestOver:
		return Pause
	}
	return Continue
}

// ResponseHeaders comes for the upstream's answer and for every local reply,
// ours and the host's own. end says that there is no body.
func (x *exchange) ResponseHeaders(end bool) (action Action) {
	defer x.leave(&action, x.enter(phaseOther))
	if x.response != responseNew {
		return Continue
	}
	if x.request == requestNew {
		// A filter before this one answered: the reply is its own affair.
		x.response = responseForeign
		return Continue
	}
	if x.request != requestSent {
		x.request = requestOver
		x.endDownloads()
	}
	x.held = true
	x.answerHeaders = x.host.Headers(ResponseHeaders)
	x.status, _ = strconv.Atoi(lookup(x.answerHeaders, ":status"))
	// A 200 behind a request that went up is an answer to translate, whoever made it.
	x.local = (x.status != 200 || !x.sentUpstream) && x.isLocal()
	if x.local && x.status >= 300 && x.status < 400 {
		// A redirect of the operator's own: no answer of the upstream.
		x.response, x.held, x.answerHeaders = responseForeign, false, nil
		return Continue
	}
	x.nameRequest(strings.Clone(lookup(x.answerHeaders, "request-id")))
	action = x.beginAnswer(end)
	x.answerHeaders = nil
	return action
}

// isLocal tells the host's own replies from the upstream's answers. A host
// without the property is believed to pass on what the upstream said.
func (x *exchange) isLocal() bool {
	details, ok := x.host.Property("response", "code_details")
	if !ok || details == "" {
		return false
	}
	if details != "via_upstream" {
		return true
	}
	_, ok = x.host.Property("upstream", "address")
	return !ok
}

// ResponseBody comes with each piece of the answer. While it is held, size is
// that of all bytes so far; once it flows, that of this piece. end says that
// no byte follows.
func (x *exchange) ResponseBody(size int, end bool) (action Action) {
	defer x.leave(&action, x.enter(phaseAnswerBody))
	x.answerBegan = true
	switch x.response {
	case responseWhole, responseModel, responseList, responseError:
		return x.wholeBody(size, end)
	case responsePaging:
		return Pause
	case responseStream:
		return x.streamBody(size, end)
	case responseOver:
		return x.rest(size)
	}
	return Continue
}

// ResponseTrailers ends an answer that was not said to be complete.
func (x *exchange) ResponseTrailers() (action Action) {
	defer x.leave(&action, x.enter(phaseAnswerTrailers))
	switch x.response {
	case responseWhole, responseModel, responseList, responseError:
		x.dropTrailers(ResponseTrailers)
		return x.wholeBody(x.answerSize, true)
	case responsePaging:
		return Pause
	case responseStream:
		x.dropTrailers(ResponseTrailers)
		return x.streamTrailers()
	case responseOver:
		x.dropTrailers(ResponseTrailers)
		return x.rest(0)
	}
	return Continue
}

// Done is the end of the stream, whoever ended it.
func (x *exchange) Done() {
	var action Action
	defer x.leave(&action, x.enter(phaseOther))
	defer x.end()
	x.recordEnd()
}

// end lets go of all that a stream has.
func (x *exchange) end() {
	x.request, x.response = requestOver, responseOver
	x.stream, x.list, x.owed, x.key, x.pageKey = nil, translate.ModelList{}, nil, "", ""
	x.requestHeaders, x.answerHeaders = nil, nil
	x.endDownloads()
	if x.plugin != nil {
		x.weigh()
	}
}

// refuse answers the client instead of the upstream. Nothing has gone up.
func (x *exchange) refuse(e *translate.Error, headers [][2]string) Action {
	x.request = requestOver
	x.endDownloads()
	if x.response != responseNew {
		// The host has answered already.
		return Pause
	}
	x.record(translate.Record{Model: x.reply.Model, Stream: x.reply.Stream, Status: e.Status, Outcome: translate.OutcomeRefused})
	x.countRefusal(e)
	x.sendReply(e, append(x.replyHeaders(nil), headers...))
	return Pause
}

// sendReply is a local reply of ours: the response phases let it pass.
func (x *exchange) sendReply(e *translate.Error, headers [][2]string) {
	x.response, x.held = responseOwn, false
	if err := x.host.Reply(e.Status, headers, envelope(e)); err != nil {
		x.host.Log(Error, "the host refused a local reply: "+err.Error())
		x.reset()
	}
}

// reset ends the stream where nothing else can: nobody would call again for one
// that stays paused.
func (x *exchange) reset() (ok bool) {
	err := x.host.Reset()
	if err != nil {
		x.host.Log(Error, "the host would not reset a stream: "+err.Error())
	}
	return err == nil
}

// leave is deferred by every phase, and guard by what runs inside the callback of
// another stream. A panic is a bug of ours: it ends this stream, where without
// them it would end all streams of the VM.
func (x *exchange) leave(action *Action, before phase) {
	if bug := recover(); bug != nil {
		*action = x.caught(bug)
	}
	x.phase = before
}

func (x *exchange) guard(action *Action) {
	if bug := recover(); bug != nil {
		*action = x.caught(bug)
	}
}

func (x *exchange) caught(bug any) Action {
	// The runtime's own texts have indexes and types, never bytes of a stream.
	text := "unknown"
	if e, ok := bug.(runtimeError); ok {
		text = e.Error()
	}
	x.host.Log(Critical, "bug in the filter: "+text)
	return x.failWith(translate.Internal())
}

// runtimeError is the interface runtime.Error.
type runtimeError interface {
	error
	RuntimeError()
}

// failWith ends a stream that cannot go on, as well as it still can: with a status
// while no header has left, else with what its body ends with.
func (x *exchange) failWith(e *translate.Error) Action {
	x.request = requestOver
	x.endDownloads()
	switch {
	case x.response == responseNew || x.held:
		x.record(translate.Record{Model: x.reply.Model, Stream: x.reply.Stream, Status: e.Status, Outcome: translate.OutcomeFailed})
		headers := x.replyHeaders(nil)
		x.sendReply(e, headers)
		x.stream, x.list = nil, translate.ModelList{}
		x.weigh()
		return Pause
	case x.response == responseOwn || x.response == responseForeign:
		return Pause
	case x.response != responseOver:
		x.breakOff(e)
	}
	return x.rest(1)
}

// breakOff decides how an answer ends whose headers have left.
func (x *exchange) breakOff(e *translate.Error) {
	status := max(x.outStatus, 200)
	x.record(translate.Record{Model: x.reply.Model, Stream: x.reply.Stream, Status: status, Outcome: translate.OutcomeFailed})
	switch {
	case x.stream != nil && x.stream.Done():
	case x.reply.Stream:
		x.owed = translate.AppendEvent(nil, e)
	default:
		x.owed = envelope(e)
	}
	x.response, x.stream, x.list = responseOver, nil, translate.ModelList{}
	x.weigh()
}

// rest puts what is owed in the place of size bytes of the answer that nobody is
// to get.
func (x *exchange) rest(size int) Action {
	out, err := x.owed, error(nil)
	switch x.phase {
	case phaseRequest:
		return Pause
	case phaseAnswerBody:
		x.owed = nil
		if size > 0 || len(out) > 0 {
			err = x.host.ReplaceBody(ResponseBody, out)
		}
	case phaseAnswerTrailers:
		x.owed = nil
		if len(out) > 0 {
			err = x.host.AppendBody(ResponseBody, out)
		}
	}
	if err != nil {
		return x.cutOff(Error, err)
	}
	return Continue
}

// cutOff is for a host that will not take the end of an answer, or not drop what
// the client must not get: a broken connection says at least that it is not whole.
func (x *exchange) cutOff(level Level, err error) Action {
	x.host.Log(level, "the host would not take the end of an answer, and the stream is reset: "+err.Error())
	if !x.reset() && x.phase == phaseAnswerTrailers {
		return Continue // nobody would call again
	}
	return Pause
}

// drop empties a buffer of size bytes that nobody is to get. Bytes that the
// host will not drop it must not send either.
func (x *exchange) drop(b Body, size int) Action {
	if size > 0 {
		if err := x.host.ReplaceBody(b, nil); err != nil {
			x.host.Log(Error, "the host would not drop bytes: "+err.Error())
			x.reset()
			return Pause
		}
	}
	return Continue
}

// dropTrailers removes trailers: they speak of the body that was replaced.
func (x *exchange) dropTrailers(m Map) {
	for _, p := range x.host.Headers(m) {
		if err := x.host.RemoveHeader(m, p[0]); err != nil {
			x.host.Log(Warn, "the host would not remove a trailer: "+err.Error())
		}
	}
}
