package main

import (
	"errors"
	"runtime"
	"slices"
	"strconv"

	"ezat.io/chat-completions/translate"
)

// chatHeaders checks the headers of a chat request and rewrites them. They are
// held until the body is translated, where the host can do that.
func (x *exchange) chatHeaders(pairs [][2]string, end bool) Action {
	c := &x.plugin.config
	size := contentLength(pairs)
	switch {
	case size > requestBodyBytesMax:
		return x.refuse(translate.TooLarge(), nil)
	case !isIdentity(lookup(pairs, "content-encoding")):
		return x.refuse(translate.UnsupportedEncoding(), nil)
	case end || size == 0:
		return x.refuse(translate.EmptyBody(), nil)
	}
	x.session = lookup(pairs, sessionHeader)
	x.cacheOff = lower(lookup(pairs, "x-ezat-cache")) == "off"
	if err := x.rewriteRequest(pairs, c.messagesPath); err != nil {
		return x.breakDown("request headers", err)
	}
	x.key = ""
	x.reply.GatewayKey = c.credentials == gatewayKey
	x.request = requestReading
	if c.holdHeaders {
		return Pause
	}
	return Continue
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
	collectAfter(x.bodySize)
	if len(fetches) > 0 {
		return x.fetchImages(fetches)
	}
	return action
}

// collectAfter clears away what a large body has left behind. Go's collector
// works beside the program, and a guest runs only while it is called: left to
// itself it falls behind until the VM has no memory left.
func collectAfter(size int) {
	if size > smallBodyBytesMax {
		runtime.GC()
	}
}

// translate puts the translated request in the place of the client's. missing
// are the images that it needs first; without them nothing has changed.
func (x *exchange) translate(images []translate.Image) (missing []translate.Fetch, action Action) {
	began := x.host.Now()
	body, err := x.host.ReadBody(RequestBody, x.bodySize)
	if err != nil {
		return nil, x.breakDown("request body", err)
	}
	defer x.host.ReleaseBody(body)
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
	x.host.Observe("ezat.translate_us", (x.worked+x.host.Now()-began)/1000)
	return nil, Continue
}

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
// and says how long the answer may take. Only held headers can still be told.
// Behind a body with trailers HTTP/1.1 has no place for a length.
func (x *exchange) sendRequest(plan *translate.Plan, sized bool) error {
	e := edits{host: x.host, m: RequestHeaders}
	put, size := x.host.ReplaceBody, 0
	plan.Write(func(piece []byte) {
		if e.err == nil && x.request == requestReading {
			e.err = put(RequestBody, piece)
			put = x.host.AppendBody
			size += len(piece)
		}
	})
	if !x.plugin.config.holdHeaders || e.err != nil || x.request != requestReading {
		return e.err
	}
	timeout := wholeAnswerTimeoutMs
	if plan.Reply.Stream {
		timeout = 0
	}
	e.set(timeoutHeader, strconv.Itoa(timeout))
	if plan.Session != "" {
		e.set(sessionHeader, plan.Session)
	}
	if sized {
		e.set("content-length", strconv.Itoa(size))
	}
	return e.err
}

// breakDown answers 500 for a host that refuses what the translation needs.
func (x *exchange) breakDown(what string, err error) Action {
	x.host.Log(Error, what+": the host refused a call: "+err.Error())
	return x.fail()
}
