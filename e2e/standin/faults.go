package standin

import (
	"net/http"
	"strconv"
	"strings"
)

// Words that, anywhere in the newest user text, make the stand-in fail on a
// request that is fine. They are for clients, which reach it only through
// what they write; tests in this repository have Script.
const (
	WordRateLimited = "STANDIN_RATE_LIMITED" // 429 with retry-after
	WordOverloaded  = "STANDIN_OVERLOADED"   // 529
	WordFailMidway  = "STANDIN_MIDWAY_FAIL"  // an error event after some of the stream; 500 without a stream
	WordCutMidway   = "STANDIN_MIDWAY_CUT"   // the stream ends too early, or the body
)

// retryAfterSeconds is the wait that a 429 asks for.
const retryAfterSeconds = "2"

// fault returns the failure that a request asks for, nil for none.
func fault(r *request, requestID string) *Response {
	text := newestAsk(r).text
	switch {
	case strings.Contains(text, WordRateLimited):
		limited := &APIError{http.StatusTooManyRequests, "rate_limit_error", "This request would exceed the rate limit of your organization."}
		reply := JSON(limited.Status, limited.Body(requestID))
		reply.Header.Set("retry-after", retryAfterSeconds)
		return reply
	case strings.Contains(text, WordOverloaded):
		overloaded := &APIError{529, "overloaded_error", "Overloaded"}
		return JSON(overloaded.Status, overloaded.Body(requestID))
	case strings.Contains(text, WordFailMidway) && !r.streams():
		return JSON(http.StatusInternalServerError, failed.Body(requestID))
	}
	return nil
}

var failed = &APIError{http.StatusInternalServerError, "api_error", "Internal server error"}

func (r *request) streams() bool { return r.body.at("stream").isTrue() }

// breakOff shortens a good answer as the newest text asks.
func breakOff(r *request, reply *Response, requestID string) {
	text := newestAsk(r).text
	fails, cuts := strings.Contains(text, WordFailMidway), strings.Contains(text, WordCutMidway)
	if !fails && !cuts {
		return
	}
	if !r.streams() {
		reply.Header.Set("content-length", strconv.Itoa(len(reply.Body)))
		reply.Body, reply.Cut = reply.Body[:len(reply.Body)/2], true
		return
	}
	reply.Pieces = reply.Pieces[:len(reply.Pieces)/2]
	if fails {
		reply.Pieces = append(reply.Pieces, Piece{Data: failed.Event(requestID)})
	}
	// Without an error the body just ends, as when a proxy gives up.
}
