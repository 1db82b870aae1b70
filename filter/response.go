package main

import (
	"strconv"

	"ezat.io/chat-completions/translate"
)

// answerHeaders decides what the response is by its headers, rewrites them,
// and holds them where the host can do that: then the body can still change
// the status.
func (x *exchange) answerHeaders(pairs [][2]string, end bool) Action {
	kind, encoded := x.classify(pairs)
	if end || encoded && kind != responseError {
		return x.answerWithout(pairs, encoded)
	}
	if encoded {
		x.answerSize = -1
	}
	if err := x.rewriteResponse(pairs); err != nil {
		return x.breakDown("response headers", err)
	}
	x.response = kind
	if kind == responseStream {
		return x.streamHeaders()
	}
	return x.holdAnswer()
}

// classify names the kind of the response. encoded says that its body cannot
// be read.
func (x *exchange) classify(pairs [][2]string) (kind responsePhase, encoded bool) {
	encoded = !isIdentity(lookup(pairs, "content-encoding"))
	switch {
	case x.status != 200:
		return responseError, encoded
	case x.route.endpoint == modelList:
		return responseList, encoded
	case x.route.endpoint == oneModel:
		return responseModel, encoded
	case x.reply.Stream && isEventStream(lookup(pairs, "content-type")):
		return responseStream, encoded
	}
	return responseWhole, encoded
}

// answerWithout replies in the place of a response whose body is not there, or
// is of no use: nothing can be put into a response without a body.
func (x *exchange) answerWithout(pairs [][2]string, encoded bool) Action {
	e := translate.BadUpstream()
	if x.status != 200 {
		e = x.upstreamError(nil)
	}
	if encoded && x.status == 200 {
		x.host.Log(Warn, "the upstream sent an encoded body though identity was asked for")
	}
	x.recordFault(e)
	x.sendReply(e, x.replyHeaders(pairs))
	return Pause
}

// holdAnswer lets the headers wait for the whole body, or sends them as far as
// they are known.
func (x *exchange) holdAnswer() Action {
	if x.plugin.config.holdHeaders {
		return Pause
	}
	e := edits{host: x.host, m: ResponseHeaders}
	x.outStatus = 200
	if x.response == responseError {
		x.outStatus = x.upstreamError(nil).Status
		e.set(":status", strconv.Itoa(x.outStatus))
	}
	if x.response == responseWhole && x.reply.Stream {
		// Only an error event can follow: see wholeBody.
		e.set("content-type", streamType)
	} else {
		e.set("content-type", jsonType)
	}
	if e.err != nil {
		return x.breakDown("response headers", e.err)
	}
	x.held = false
	return Continue
}

// wholeBody buffers a body and translates it when it is whole.
func (x *exchange) wholeBody(size int, end bool) Action {
	if x.answerSize < 0 {
		return x.finishError(nil)
	}
	x.answerSize = size
	switch {
	case x.response == responseError && size > errorBodyBytesMax:
		return x.finishError(nil)
	case size > answerBodyBytesMax:
		return x.finishFault(translate.BadUpstream())
	case !end:
		return Pause
	}
	body, err := x.host.ReadBody(ResponseBody, size)
	if err != nil {
		return x.breakDown("response body", err)
	}
	defer collectAfter(size)
	defer x.host.ReleaseBody(body)
	switch x.response {
	case responseError:
		return x.finishError(body)
	case responseList:
		return x.addPage(body)
	case responseModel:
		return x.finishModel(body)
	}
	return x.finishChat(body)
}

func (x *exchange) finishChat(body []byte) Action {
	out := x.plugin.takeScratch()
	defer func() { x.plugin.giveScratch(out) }()
	if x.reply.Stream {
		return x.finishFault(translate.BadUpstream())
	}
	var record translate.Record
	var e *translate.Error
	out, record, e = x.reply.Answer(out, body, x.answer())
	if e != nil {
		return x.finishFault(e)
	}
	record.Status = 200
	x.record(record)
	return x.finish(200, out)
}

// answer is what the core may not find out itself.
func (x *exchange) answer() translate.Answer {
	return translate.Answer{RequestID: x.requestID, Created: x.host.Now() / 1_000_000_000}
}

// upstreamError is the client's form of an error response. The host's own
// replies are never about the gateway's key.
func (x *exchange) upstreamError(body []byte) *translate.Error {
	reply := x.reply
	if x.local {
		reply.GatewayKey = false
		body = nil
	}
	if x.route.endpoint == modelList && x.status == 404 {
		// No model was named: models_path leads nowhere.
		return translate.BadUpstream()
	}
	return reply.UpstreamError(x.status, body)
}

func (x *exchange) finishError(body []byte) Action {
	return x.finishFault(x.upstreamError(body))
}

// finishFault answers with an error in the place of the upstream's body. Where
// trailers came and no body, there is no place: a reply of ours must do.
func (x *exchange) finishFault(e *translate.Error) Action {
	x.recordFault(e)
	if x.held && !x.answerBegan {
		x.sendReply(e, x.replyHeaders(x.host.Headers(ResponseHeaders)))
		return Pause
	}
	if !x.held && x.response == responseWhole && x.reply.Stream {
		return x.finish(e.Status, translate.AppendEvent(nil, e))
	}
	return x.finish(e.Status, envelope(e))
}

// finish puts the client's whole body in the place of the upstream's. What may
// still come of that is dropped.
func (x *exchange) finish(status int, body []byte) Action {
	e := edits{host: x.host, m: ResponseHeaders}
	if x.held {
		e.set(":status", strconv.Itoa(status))
		e.set("content-type", jsonType)
		// The upstream may go on talking; the length ends the answer here.
		e.set("content-length", strconv.Itoa(len(body)))
	}
	if e.err == nil {
		e.err = x.host.ReplaceBody(ResponseBody, body)
	}
	if e.err != nil {
		return x.breakDown("response", e.err)
	}
	x.response, x.held = responseOver, false
	return Continue
}
