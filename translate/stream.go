package translate

import (
	"ezat.io/chat-completions/translate/internal/jsontext"
	"ezat.io/chat-completions/translate/internal/sse"
)

// Stream turns the upstream's event stream into the client's (contract,
// "Streaming"; decisions 30 to 38).
//
//	message_start        the chunk with the role
//	content_block_start  of a tool call: its id and name, with arguments ""
//	content_block_delta  text or arguments, unless they are ""
//	content_block_stop   of a tool call that got no arguments: its input, or {}
//	message_delta        nothing: finish reason and usage are kept
//	message_stop         the finish chunk, the usage chunk if asked for, [DONE]
//	ping                 the comment line ": ping"
//	error                the error event, [DONE]
//
// The type in an event's JSON says what it is; events, blocks, deltas and fields
// that are not known are passed over, and so is what comes after [DONE]. A
// stream is broken, and fails, where an event is no JSON object or too long,
// where a known event lacks what the client must get, where a second
// message_start comes, or content before the first, or text or arguments for a
// block that is not open, and where it ends without message_stop: what the
// client gets is whole, or says that it is not.
type Stream struct {
	reply   Reply
	in      sse.Reader
	doc     jsontext.Doc
	holding bool

	// What stands around the changing part of each kind of chunk.
	front, back         []byte // a choice's delta, an object
	textFront, textBack []byte // its content, a string
	callFront, callBack []byte // the arguments of call callAt, a string
	callAt              int

	blocks []openBlock
	calls  int // tool calls begun
	held   int // bytes of input that open blocks brought in their start

	counts    tokenCounts
	generated int64 // bytes of text and arguments
	finish    string

	began   bool // the first whole event has come
	started bool // message_start has come
	done    bool
	outcome string // of a stream that is done
	status  int
	early   *Error
}

// openBlock is a content block between its start and its stop.
type openBlock struct {
	index int64 // the upstream's, over all blocks
	kind  answerKind
	call  int    // the tool index: the upstream's calls counted (decision 32)
	spoke bool   // some arguments have been sent
	input []byte // input of the start, as spelled; nil where it is empty
}

// NewStream makes the machine for one stream. holding tells that the response
// headers wait for the first event, so that a failure before it can still become
// a real HTTP status (decision 37).
func NewStream(r Reply, a Answer, holding bool) *Stream {
	s := &Stream{
		reply:   r,
		in:      sse.NewReader(eventBytesMax),
		holding: holding,
		callAt:  -1,
		finish:  finishReason(nil),
		status:  200,
	}
	s.front = r.appendHead([]byte("data: "), "chat.completion.chunk", a)
	s.back = append(s.back, `,"logprobs":null,"finish_reason":null}]`...)
	s.back = s.appendChunkEnd(s.back)
	s.textFront = append(append([]byte(nil), s.front...), `{"index":0,"delta":{"content":"`...)
	s.textBack = append([]byte(`"}`), s.back...)
	s.callBack = append([]byte(`"}}]}`), s.back...)
	return s
}

// Feed translates the next bytes of the upstream's stream and appends the
// client's bytes to dst. end marks the last call, whose chunk may be empty. Where
// the stream was cut into chunks changes nothing. Feed never fails: a broken
// stream gets the error event and [DONE], or an Early error. When the stream is
// done it appends nothing.
func (s *Stream) Feed(dst, chunk []byte, end bool) []byte {
	if s.done {
		return dst
	}
	s.in.Push(chunk, end)
	for !s.done {
		if len(s.blocks) > 0 {
			var n int
			dst, n = s.quick(dst, s.in.Whole())
			s.in.Skip(n)
		}
		data, ok := s.in.Next()
		if !ok {
			break
		}
		dst = s.event(dst, data)
		s.began = s.began || s.early == nil
	}
	switch {
	case s.done:
	case s.in.TooLarge():
		dst = s.fail(dst, BadUpstream())
	case end:
		dst = s.fail(dst, brokenOff())
	}
	if s.done {
		s.release()
	}
	return dst
}

// release lets go of what only a running stream needs.
func (s *Stream) release() {
	s.in, s.doc, s.blocks, s.held = sse.Reader{}, jsontext.Doc{}, nil, 0
}

// Held is the memory that waits for more of the stream, in bytes: an event that
// has not come whole, and inputs that blocks brought in their start. The few
// kilobytes that every stream has do not count.
func (s *Stream) Held() int { return s.in.Held() + s.held }

// Fail ends a stream for a reason that is not its own: it appends the error event
// and [DONE], or makes the error an Early one. A stream that is done stays as it is.
func (s *Stream) Fail(dst []byte, e *Error) []byte {
	if s.done {
		return dst
	}
	dst = s.fail(dst, e)
	s.release()
	return dst
}

// brokenOff: a stream that ends without message_stop (decision 36).
func brokenOff() *Error { return rowOf(500).error("The upstream broke the answer off.") }

// Began tells that the first whole event has come, a ping included: response
// headers that wait for it may go (decision 37).
func (s *Stream) Began() bool { return s.began }

// Early is the error of a stream that failed before its first event while the
// response headers waited: the answer is a real HTTP status and a JSON error.
// Feed wrote nothing.
func (s *Stream) Early() *Error { return s.early }

// Done tells that [DONE], or an Early error, is out.
func (s *Stream) Done() bool { return s.done }

// Spoke tells that some text or arguments have been written: the client has its
// first token.
func (s *Stream) Spoke() bool { return s.generated > 0 }

// fail ends the stream with an error (decisions 36 and 37).
func (s *Stream) fail(dst []byte, e *Error) []byte {
	s.done = true
	s.outcome = OutcomeFailed
	if !s.began {
		s.outcome = OutcomeUpstreamError
		if s.holding {
			s.early, s.status = e, e.Status
			return dst
		}
	}
	return AppendEvent(dst, e)
}

// stop ends the stream well: what open calls still owe, the finish chunk, usage
// and [DONE].
func (s *Stream) stop(dst []byte) []byte {
	for i := range s.blocks {
		dst = s.closeBlock(dst, &s.blocks[i])
	}
	dst = append(dst, s.front...)
	dst = append(dst, `{"index":0,"delta":{},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, s.finish...)
	dst = append(dst, `"}]`...)
	dst = s.appendChunkEnd(dst)
	if s.reply.IncludeUsage {
		usage := s.counts.usage()
		dst = append(dst, s.front...)
		dst = append(dst, `],"usage":`...)
		dst = usage.append(dst)
		dst = append(dst, "}\n\n"...)
	}
	s.done, s.outcome = true, OutcomeOK
	return append(dst, streamEnd...)
}

// appendChunkEnd ends a chunk behind its choices. Chunks have no usage key
// unless it was asked for (decision 31).
func (s *Stream) appendChunkEnd(dst []byte) []byte {
	if s.reply.IncludeUsage {
		dst = append(dst, `,"usage":null`...)
	}
	return append(dst, "}\n\n"...)
}

// Record is the usage of the stream so far. A stream that has not ended counts
// as left by the client: its input as last reported, its output the larger of
// the last report and an estimate from what was generated (operator's contract,
// "What is recorded").
func (s *Stream) Record() Record {
	rec := Record{Model: s.reply.Model, Stream: true, Status: s.status, Outcome: s.outcome}
	switch {
	case !s.done:
		rec.Outcome, rec.Estimated = OutcomeClientLeft, true
		rec.Usage = s.counts.usage()
		estimate := (s.generated + textBytesPerToken - 1) / textBytesPerToken
		rec.Usage.Completion = max(rec.Usage.Completion, estimate)
	case s.outcome == OutcomeOK:
		rec.FinishReason = s.finish
		rec.Usage = s.counts.usage()
	}
	return rec
}
