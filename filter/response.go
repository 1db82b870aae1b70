package main

import "ezat.io/chat-completions/translate"

// beginAnswer decides what the response is by its headers, and holds them where
// the host can do that: then the body can still change the status. They are
// rewritten when they leave.
func (x *exchange) beginAnswer(end bool) Action {
	kind, encoded := x.classify()
	if end || encoded && kind != responseError {
		return x.answerWithout(encoded)
	}
	if encoded {
		x.answerSize = -1
	}
	x.response = kind
	if kind == responseStream {
		return x.streamHeaders()
	}
	return x.holdAnswer()
}

// classify names the kind of the response. encoded says that its body cannot
// be read.
func (x *exchange) classify() (kind responsePhase, encoded bool) {
	encoded = !isIdentity(lookup(x.answerHeaders, "content-encoding"))
	switch {
	case x.status != 200:
		return responseError, encoded
	case x.route.endpoint == modelList:
		return responseList, encoded
	case x.route.endpoint == oneModel:
		return responseModel, encoded
	case x.reply.Stream && isEventStream(lookup(x.answerHeaders, "content-type")):
		return responseStream, encoded
	}
	return responseWhole, encoded
}

// answerWithout replies in the place of a response whose body is not there, or
// is of no use: nothing can be put into a response without a body.
func (x *exchange) answerWithout(encoded bool) Action {
	e := translate.BadUpstream()
	if x.status != 200 {
		e = x.upstreamError(nil)
	}
	if encoded && x.status == 200 {
		x.host.Log(Warn, "the upstream sent an encoded body though identity was asked for")
	}
	x.record(x.faultRecord(e))
	x.sendReply(e, x.replyHeaders(x.clientPairs()))
	return Pause
}

// holdAnswer lets the headers wait for the whole body, or sends them as far as
// they are known.
func (x *exchange) holdAnswer() Action {
	if x.plugin.config.holdHeaders {
		return Pause
	}
	x.outStatus = 200
	if x.response == responseError {
		x.outStatus = x.upstreamError(nil).Status
	}
	contentType := jsonType
	if x.response == responseWhole && x.reply.Stream {
		contentType = streamType // only an error event can follow: see finishFault
	}
	if err := x.letHeadersGo(x.outStatus, contentType); err != nil {
		return x.breakDown("response headers", err)
	}
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
	defer x.collectAfter(size, spentOn(size))
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
	return x.finish(200, out, record)
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
	if x.held && !x.answerBegan {
		x.record(x.faultRecord(e))
		x.sendReply(e, x.replyHeaders(x.clientPairs()))
		return Pause
	}
	if !x.held && x.response == responseWhole && x.reply.Stream {
		return x.finish(e.Status, translate.AppendEvent(nil, e), x.faultRecord(e))
	}
	return x.finish(e.Status, envelope(e), x.faultRecord(e))
}

// finish puts the client's whole body in the place of the upstream's, and records
// the exchange. What may still come of the upstream's is dropped.
func (x *exchange) finish(status int, body []byte, record translate.Record) Action {
	if x.held {
		// The upstream may go on talking; the length ends the answer here.
		if err := x.setClientHeaders(status, jsonType, len(body)); err != nil {
			return x.breakDown("response headers", err)
		}
	}
	x.record(record)
	if err := x.host.ReplaceBody(ResponseBody, body); err != nil {
		return x.breakDown("response body", err)
	}
	x.response, x.held, x.list = responseOver, false, translate.ModelList{}
	x.weigh()
	return Continue
}

// letHeadersGo puts the client's headers in the place of the upstream's, which
// leave with the end of the callback.
func (x *exchange) letHeadersGo(status int, contentType string) error {
	if err := x.setClientHeaders(status, contentType, -1); err != nil {
		return err
	}
	x.held = false
	return nil
}
