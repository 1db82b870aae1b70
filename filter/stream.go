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
	out := x.feed(chunk, end)
	defer func() { x.plugin.giveScratch(out) }()
	if e := x.stream.Early(); e != nil {
		return x.finishFault(e)
	}
	if size > 0 || len(out) > 0 {
		if err := x.host.ReplaceBody(ResponseBody, out); err != nil {
			return x.breakDown("response body", err)
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
	out := x.feed(nil, true)
	defer func() { x.plugin.giveScratch(out) }()
	if e := x.stream.Early(); e != nil {
		return x.finishFault(e)
	}
	if err := x.letStreamGo(); err != nil {
		return x.breakDown("response headers", err)
	}
	if len(out) > 0 {
		if err := x.host.AppendBody(ResponseBody, out); err != nil {
			x.host.Log(Warn, "the end of a broken stream could not be added before its trailers: "+err.Error())
		}
	}
	return Continue
}

// feed runs the core's machine. Usage is recorded before the bytes with [DONE]
// leave.
func (x *exchange) feed(chunk []byte, end bool) []byte {
	out := x.stream.Feed(x.plugin.takeScratch(), chunk, end)
	if !x.firstToken && x.stream.Spoke() {
		x.firstToken = true
		x.host.Observe(firstTokenTime, (x.host.Now()-x.began)/1_000_000)
	}
	if x.stream.Early() == nil && x.stream.Done() {
		x.recordStream()
	}
	return out
}
