package main

import "ezat.io/chat-completions/translate"

// streamHeaders begins a streamed answer. Its headers wait for the first whole
// event, so that an error which comes first can still be a status (decision 37).
func (x *exchange) streamHeaders() Action {
	hold := x.plugin.config.holdHeaders
	x.stream = translate.NewStream(x.reply, x.answer(), hold)
	if hold {
		return Pause
	}
	if err := x.letStreamGo(); err != nil {
		return x.breakDown("response headers", err)
	}
	return Continue
}

// letStreamGo lets the headers of a stream go, if they are still here.
func (x *exchange) letStreamGo() error {
	if !x.held {
		return nil
	}
	return x.letHeadersGo(200, streamType)
}

// streamBody translates the next bytes and lets the result go at once.
func (x *exchange) streamBody(size int, end bool) Action {
	var chunk []byte
	if size > 0 {
		var err error
		if chunk, err = x.host.ReadBody(ResponseBody, size); err != nil {
			return x.breakDown("response body", err)
		}
		defer x.host.ReleaseBody(chunk)
	}
	out := x.plugin.takeScratch()
	defer func() { x.plugin.giveScratch(out) }()
	for first := true; first || len(chunk) > 0; first = false {
		// In parts: what a part becomes is larger, and must not be held as a whole.
		part := chunk[:min(len(chunk), feedBytesMax)]
		chunk = chunk[len(part):]
		out = x.feed(out[:0], part, end && len(chunk) == 0)
		if e := x.stream.Early(); e != nil {
			return x.finishFault(e)
		}
		var err error
		switch {
		case first && (size > 0 || len(out) > 0):
			err = x.host.ReplaceBody(ResponseBody, out)
		case len(out) > 0:
			err = x.host.AppendBody(ResponseBody, out)
		}
		if err != nil {
			return x.cutOff(Error, err)
		}
	}
	if x.held && !end && !x.stream.Began() {
		return Pause
	}
	if err := x.letStreamGo(); err != nil {
		return x.breakDown("response headers", err)
	}
	return Continue
}

// streamTrailers ends a stream whose last bytes have gone: what is due goes
// behind them, if the host still takes it.
func (x *exchange) streamTrailers() Action {
	out := x.feed(x.plugin.takeScratch(), nil, true)
	defer func() { x.plugin.giveScratch(out) }()
	if e := x.stream.Early(); e != nil {
		return x.finishFault(e)
	}
	if err := x.letStreamGo(); err != nil {
		return x.breakDown("response headers", err)
	}
	if len(out) > 0 {
		if err := x.host.AppendBody(ResponseBody, out); err != nil {
			return x.cutOff(Warn, err)
		}
	}
	return Continue
}

// feed runs the core's machine, and appends to dst. Usage is recorded before the
// bytes with [DONE] leave.
func (x *exchange) feed(dst, chunk []byte, end bool) []byte {
	dst = x.stream.Feed(dst, chunk, end)
	if !x.fits() {
		dst = x.stream.Fail(dst, translate.BadUpstream())
		x.weigh()
	}
	if !x.firstToken && x.stream.Spoke() {
		x.firstToken = true
		x.host.Observe(firstTokenTime, (x.host.Now()-x.began)/1_000_000)
	}
	if x.stream.Early() == nil && x.stream.Done() {
		x.recordStream()
	}
	return dst
}
