package main

import (
	"errors"
	"slices"
	"strconv"

	"ezat.io/chat-completions/translate"
)

// chatHeaders checks the headers of a chat request. They are held until the body
// is translated, and rewritten then; where the host cannot hold them, at once.
func (x *exchange) chatHeaders(end bool) Action {
	c, pairs := &x.plugin.config, x.requestHeaders
	size := contentLength(pairs)
	switch {
	case size > requestBodyBytesMax:
		return x.refuse(translate.TooLarge(), nil)
	case !isIdentity(lookup(pairs, "content-encoding")):
		return x.refuse(translate.UnsupportedEncoding(), nil)
	case end || size == 0:
		return x.refuse(translate.EmptyBody(), nil)
	}
	x.cacheOff = equalFold(lookup(pairs, "x-ezat-cache"), "off")
	x.reply.GatewayKey = c.credentials == gatewayKey
	x.request = requestReading
	if c.holdHeaders {
		return Pause
	}
	if err := x.setChatHeaders(lookup(pairs, sessionHeader), "", ""); err != nil {
		return x.breakDown("request headers", err)
	}
	return Continue
}

// setChatHeaders turns the headers of a chat request into the upstream's. What is
// not known is "".
func (x *exchange) setChatHeaders(session, timeout, length string) error {
	e := x.upstreamHeaders(x.plugin.config.messagesPath)
	for _, h := range [...][2]string{
		{"content-type", jsonType}, {sessionHeader, session}, {timeoutHeader, timeout}, {"content-length", length},
	} {
		if h[1] != "" {
			e.set(h[0], h[1])
		}
	}
	e.remove(dropsUpstream)
	return e.err
}

// chatBody buffers the body and translates it when it is whole.
func (x *exchange) chatBody(size int, end bool) Action {
	x.bodySize = size
	switch {
	case size > requestBodyBytesMax:
		return x.refuse(translate.TooLarge(), nil)
	case !end:
		return Pause
	}
	return x.wholeRequest()
}

// wholeRequest translates the body, of which bodySize bytes are buffered, or
// begins to download the images that it needs.
func (x *exchange) wholeRequest() Action {
	if x.bodySize == 0 {
		return x.refuse(translate.EmptyBody(), nil)
	}
	fetches, action := x.translate(nil)
	x.collectAfter(x.bodySize, x.plugin.parser.Spent())
	if len(fetches) > 0 {
		return x.fetchImages(fetches)
	}
	return action
}

// collectAfter clears away what a large body has left behind, at once or, of a
// smaller one that has taken spent bytes of memory, together with others.
func (x *exchange) collectAfter(size, spent int) {
	if size > smallBodyBytesMax {
		x.plugin.ledger.collect()
		return
	}
	x.plugin.ledger.made(spent)
}

// spentOn is about how much memory the translation of an answer has taken that is
// not used again: its index, and texts.
func spentOn(size int) int {
	if size < answerFreeBytesMax {
		return 0
	}
	return answerSpentTimes * size
}

// translate puts the translated request in the place of the client's. missing
// are the images that it needs first; without them nothing has changed.
func (x *exchange) translate(images []translate.Image) (missing []translate.Fetch, action Action) {
	began := x.host.Now()
	if action, ok := x.readHeaders(); !ok {
		return nil, action
	}
	defer x.forgetHeaders()
	body, err := x.host.ReadBody(RequestBody, x.bodySize)
	if err != nil {
		return nil, x.breakDown("request body", err)
	}
	defer x.host.ReleaseBody(body)
	defer x.plugin.parser.Release()
	plan, refusal := x.decide(body)
	if refusal != nil {
		return nil, x.refuse(refusal, nil)
	}
	x.reply = plan.Reply
	switch {
	case len(plan.Fetches) == len(images):
	case len(images) == 0:
		x.worked = x.host.Now() - began
		return slices.Clone(plan.Fetches), Pause
	default:
		return nil, x.breakDown("request body", errors.New("it has changed"))
	}
	plan.Resolve(images)
	if err := x.sendRequest(plan, !x.trailers); err != nil {
		return nil, x.breakDown("request", err)
	}
	if x.request != requestReading {
		// The host has answered from inside one of the calls above: the new body
		// was longer than its buffers.
		return nil, Pause
	}
	x.request, x.sentUpstream = requestSent, true
	x.host.Observe(translateTime, (x.worked+x.host.Now()-began)/1000)
	return nil, Continue
}

// readHeaders reads the request's headers, where they are still held, as other
// filters have left them by now.
func (x *exchange) readHeaders() (action Action, ok bool) {
	if !x.plugin.config.holdHeaders {
		return Continue, true
	}
	x.requestHeaders = x.host.Headers(RequestHeaders)
	if len(x.requestHeaders) == 0 {
		return x.breakDown("request headers", errors.New("there are none")), false
	}
	if !x.readKey() {
		return x.refuse(translate.MissingKey(), nil), false
	}
	x.session = lookup(x.requestHeaders, sessionHeader)
	return Continue, true
}

func (x *exchange) forgetHeaders() { x.requestHeaders, x.key, x.session = nil, "", "" }

func (x *exchange) decide(body []byte) (*translate.Plan, *translate.Error) {
	c := &x.plugin.config
	request, refusal := x.plugin.parser.Parse(body)
	if refusal != nil {
		if request != nil {
			x.reply = request.Reply() // the record names what was asked for
		}
		return nil, refusal
	}
	return translate.Decide(request, &translate.Env{
		Models:        x.plugin.models,
		RefuseUnknown: c.refuseUnknown,
		AutoCache:     c.caching && !x.cacheOff,
		SessionHeader: x.session,
		GatewayKey:    c.credentials == gatewayKey,
	})
}

// sendRequest puts the new body in the place of the old one, piece by piece,
// and the upstream's headers in the place of the client's if they are held.
// Behind a body with trailers HTTP/1.1 has no place for a length.
func (x *exchange) sendRequest(plan *translate.Plan, sized bool) error {
	w := bodyWriter{x: x}
	plan.Write(w.put)
	if !x.plugin.config.holdHeaders || w.err != nil || x.request != requestReading {
		return w.err
	}
	timeout, length := wholeAnswerTimeout, ""
	if plan.Reply.Stream {
		timeout = "0"
	}
	if sized {
		length = strconv.Itoa(w.size)
	}
	return x.setChatHeaders(plan.Session, timeout, length)
}

// bodyWriter puts the pieces of a request's new body into the host's buffer.
type bodyWriter struct {
	x    *exchange
	size int // bytes so far
	err  error
}

// put replaces the old body by the first piece and appends the others. It stops
// once the host refuses one or answers by itself.
func (w *bodyWriter) put(piece []byte) {
	switch {
	case w.err != nil || w.x.request != requestReading:
		return
	case w.size == 0:
		w.err = w.x.host.ReplaceBody(RequestBody, piece)
	default:
		w.err = w.x.host.AppendBody(RequestBody, piece)
	}
	w.size += len(piece)
}

// breakDown answers 500 for a host that refuses what the translation needs.
func (x *exchange) breakDown(what string, err error) Action {
	x.host.Log(Error, what+": the host refused a call: "+err.Error())
	return x.failWith(translate.Internal())
}
