package standin

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"
)

// Recorded is one request as the stand-in received it.
type Recorded struct {
	Method        string
	Path          string // with the query
	Host          string
	Header        http.Header // without Host
	ContentLength int64       // -1 for a chunked body
	Body          []byte      // cut off after 32 MB and one byte
	RequestID     string      // the request-id of the reply
	Refusal       *APIError   // what the API would refuse the request with, nil when it is fine
}

// Response is a scripted reply. Status 0 means 200. Header wins over the
// headers that every reply has; a key with no values removes one.
type Response struct {
	Status  int
	Header  http.Header
	Body    []byte      // a reply of known length, unless there are Pieces
	Pieces  []Piece     // a reply of unknown length, each piece sent at once
	Trailer http.Header // sent after the pieces
	Cut     bool        // breaks the connection off instead of ending the reply; with neither Status, Body nor Pieces before the first byte
	Silent  bool        // never answers; ends when the client leaves or the Server is closed
}

// Piece is a part of a reply.
type Piece struct {
	Wait  <-chan struct{} // if not nil: sent when the channel has something or is closed
	Pause time.Duration   // waited before Data is sent
	Data  []byte
}

// JSON returns a reply of known length with a JSON body.
func JSON(status int, body []byte) *Response {
	return &Response{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// SSE returns an event stream that is sent in the given pieces, which may
// be cut anywhere.
func SSE(pieces ...[]byte) *Response {
	reply := &Response{Status: http.StatusOK, Header: eventStreamHeader(), Pieces: []Piece{}}
	for _, data := range pieces {
		reply.Pieces = append(reply.Pieces, Piece{Data: data})
	}
	return reply
}

// Events cuts an event stream after each blank line, for SSE. A rest
// without a blank line is the last piece.
func Events(body []byte) [][]byte {
	var pieces [][]byte
	for len(body) > 0 {
		i := bytes.Index(body, []byte("\n\n"))
		if i < 0 {
			return append(pieces, body)
		}
		pieces = append(pieces, body[:i+2])
		body = body[i+2:]
	}
	return pieces
}

func eventStreamHeader() http.Header {
	return http.Header{
		"Content-Type":  {"text/event-stream; charset=utf-8"},
		"Cache-Control": {"no-cache"},
	}
}

// Script sets what answers the requests from now on. It is called for each
// one, also from several goroutines; nil means the answer or refusal that
// the API would give. A nil Script ends it.
func (s *Server) Script(script func(*Recorded) *Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Relax sets the rules that do not apply from now on.
func (s *Server) Relax(rules ...Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relax = rules
}

// Requests returns the requests received so far, oldest first. A request is
// there before its reply is sent.
func (s *Server) Requests() []*Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Recorded(nil), s.records...)
}

// Reset forgets the requests and the script, and goes back to the rules of
// the Options.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records, s.recorded, s.script, s.relax = nil, 0, nil, s.options.Relax
}

// usualHeader is what every reply of the API carries; nothing in it depends
// on the time of day.
func usualHeader(requestID string) http.Header {
	return http.Header{
		"Request-Id":                             {requestID},
		"Anthropic-Organization-Id":              {"8d6a3c1e-0f52-4b7a-9c3d-51e2f7a94b60"},
		"Anthropic-Ratelimit-Requests-Limit":     {"4000"},
		"Anthropic-Ratelimit-Requests-Remaining": {"3999"},
		"Anthropic-Ratelimit-Requests-Reset":     {"2026-11-30T12:00:00Z"},
		"Anthropic-Ratelimit-Tokens-Limit":       {"4800000"},
		"Anthropic-Ratelimit-Tokens-Remaining":   {"4799000"},
		"Anthropic-Ratelimit-Tokens-Reset":       {"2026-11-30T12:00:00Z"},
	}
}

func (s *Server) write(ctx context.Context, w http.ResponseWriter, rec *Recorded, reply *Response) error {
	if reply.Silent {
		return s.wait(ctx, nil)
	}
	if reply.Cut && reply.Status == 0 && reply.Body == nil && reply.Pieces == nil {
		return errCut
	}
	header := w.Header()
	for _, values := range []http.Header{usualHeader(rec.RequestID), reply.Header} {
		for key, value := range values {
			header[http.CanonicalHeaderKey(key)] = value
		}
	}
	if reply.Pieces == nil && header.Get("content-length") == "" {
		header.Set("content-length", strconv.Itoa(len(reply.Body)))
	}
	status := reply.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	if err := s.writeBody(ctx, w, reply); err != nil {
		return err
	}
	for key, values := range reply.Trailer {
		header[http.TrailerPrefix+key] = values
	}
	if reply.Cut {
		return errCut
	}
	return nil
}

func (s *Server) writeBody(ctx context.Context, w http.ResponseWriter, reply *Response) error {
	control := http.NewResponseController(w)
	pieces := reply.Pieces
	if pieces == nil {
		pieces = []Piece{{Data: reply.Body}}
	} else if err := control.Flush(); err != nil {
		// The head leaves at once, as the live API's does.
		return err
	}
	for _, piece := range pieces {
		if err := s.await(ctx, piece); err != nil {
			return err
		}
		if _, err := w.Write(piece.Data); err != nil {
			return err
		}
		if reply.Pieces == nil && !reply.Cut {
			return nil
		}
		if err := control.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// await holds a piece back for as long as it says.
func (s *Server) await(ctx context.Context, piece Piece) error {
	if piece.Wait != nil {
		if err := s.wait(ctx, piece.Wait); err != nil {
			return err
		}
	}
	if piece.Pause <= 0 {
		return nil
	}
	timer := time.NewTimer(piece.Pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return errCut
	}
}

// wait returns nil when the channel lets go, errCut when the Server is
// closed.
func (s *Server) wait(ctx context.Context, let <-chan struct{}) error {
	select {
	case <-let:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return errCut
	}
}
