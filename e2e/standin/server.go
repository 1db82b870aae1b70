package standin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options configure a Server. The zero value serves every key.
type Options struct {
	// Keys are the accepted credentials; none means that all are accepted.
	Keys []string
	// Relax names rules that do not apply.
	Relax []Rule
	// EventDelay is the pause before each event of a made-up stream.
	EventDelay time.Duration
	// PageMax bounds a page of the model list below what a client asks for,
	// so that a short list has several pages; 0 means the API's 1000.
	PageMax int
	// RecordsMax bounds the requests kept for Requests; 0 means 256. Older
	// ones are dropped, also when their bodies exceed 256 MB together.
	RecordsMax int
}

// Server is the stand-in, an http.Handler. Its methods may be called while
// it serves.
type Server struct {
	options Options
	cache   promptCache
	closed  chan struct{}
	close   sync.Once

	mu       sync.Mutex
	count    int // requests so far
	relax    []Rule
	script   func(*Recorded) *Response
	records  []*Recorded
	recorded int // bytes in the bodies of records
}

// New returns a Server that is ready to serve.
func New(options Options) *Server {
	return &Server{options: options, relax: options.Relax, closed: make(chan struct{})}
}

// Close ends every answer that still waits. The Server may not be used
// afterwards.
func (s *Server) Close() { s.close.Do(func() { close(s.closed) }) }

// recordedBytesMax bounds the bodies kept for Requests.
const recordedBytesMax = 268_435_456

// recordsMax is the usual bound of Options.RecordsMax.
const recordsMax = 256

// ServeHTTP serves POST /v1/messages, GET /v1/models and
// GET /v1/models/{id}.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, bodyBytesMax+1))
	if err == nil && len(body) > bodyBytesMax {
		// Take in what may still come, so that the client reads the reply.
		_, err = io.Copy(io.Discard, io.LimitReader(req.Body, bodyBytesMax))
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	s.mu.Lock()
	s.count++
	relax, script := s.relax, s.script
	id := "req_011C" + deriveID("request"+strconv.Itoa(s.count), 20)
	s.mu.Unlock()

	rec := &Recorded{
		Method: req.Method, Path: req.URL.RequestURI(), Header: req.Header.Clone(), Host: req.Host,
		ContentLength: req.ContentLength, Body: body, RequestID: id,
	}
	reply := s.answer(req, rec, relax)
	s.record(rec)
	if script != nil {
		if scripted := script(rec); scripted != nil {
			reply = scripted
		}
	}
	s.send(req.Context(), w, rec, reply)
}

func (s *Server) record(rec *Recorded) {
	limit := s.options.RecordsMax
	if limit == 0 {
		limit = recordsMax
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, rec)
	s.recorded += len(rec.Body)
	for len(s.records) > limit || s.recorded > recordedBytesMax && len(s.records) > 1 {
		s.recorded -= len(s.records[0].Body)
		s.records = s.records[1:]
	}
}

// answer makes the reply that the API would give, and notes a refusal in
// rec.
func (s *Server) answer(req *http.Request, rec *Recorded, relax []Rule) *Response {
	reply, refusal := s.route(req, rec, relax)
	if refusal == nil {
		return reply
	}
	rec.Refusal = refusal
	reply = JSON(refusal.Status, refusal.Body(rec.RequestID))
	if refusal.Status == http.StatusMethodNotAllowed {
		reply.Header.Set("allow", allowed(req.URL.Path))
	}
	return reply
}

func (s *Server) route(req *http.Request, rec *Recorded, relax []Rule) (*Response, *APIError) {
	path := req.URL.Path
	method := allowed(path)
	switch {
	case method == "":
		return nil, notFound("Not Found")
	case req.Method != method:
		return nil, &APIError{http.StatusMethodNotAllowed, "invalid_request_error", "Method Not Allowed"}
	case len(rec.Body) > bodyBytesMax:
		return nil, tooLarge()
	}
	if err := s.authorize(req.Header); err != nil {
		return nil, err
	}
	if path == messagesPath {
		return s.messages(req.Header, rec, relax)
	}
	if err := checkHeader(req.Header); err != nil {
		return nil, err
	}
	if path == modelsPath {
		return listModels(req.URL.Query(), s.options.PageMax)
	}
	return oneModel(strings.TrimPrefix(path, modelsPath+"/"))
}

const (
	messagesPath = "/v1/messages"
	modelsPath   = "/v1/models"
)

// allowed returns the method that a path takes, "" for unknown paths.
func allowed(path string) string {
	switch {
	case path == messagesPath:
		return http.MethodPost
	case path == modelsPath, strings.HasPrefix(path, modelsPath+"/"):
		return http.MethodGet
	}
	return ""
}

func (s *Server) authorize(header http.Header) *APIError {
	key := credential(header)
	if key == "" || len(s.options.Keys) == 0 {
		return nil // a missing key is told with the other headers
	}
	for _, known := range s.options.Keys {
		if key == known {
			return nil
		}
	}
	if header.Get("x-api-key") != "" {
		return unauthorized("invalid x-api-key")
	}
	return unauthorized("Invalid bearer token")
}

func (s *Server) messages(header http.Header, rec *Recorded, relax []Rule) (*Response, *APIError) {
	r, refusal := read(header, rec.Body, relax)
	if refusal != nil {
		return nil, refusal
	}
	if reply := fault(r, rec.RequestID); reply != nil {
		return reply, nil
	}
	m := answer(r, s.cache.account(r))
	reply := JSON(http.StatusOK, m.appendMessage(nil))
	if r.streams() {
		reply = &Response{Status: http.StatusOK, Header: eventStreamHeader()}
		for _, event := range m.events() {
			reply.Pieces = append(reply.Pieces, Piece{Data: event, Pause: s.options.EventDelay})
		}
	}
	breakOff(r, reply, rec.RequestID)
	return reply, nil
}

// send writes a reply; where the reply says so, or when the client or the
// server goes away, it aborts the connection.
func (s *Server) send(ctx context.Context, w http.ResponseWriter, rec *Recorded, reply *Response) {
	err := s.write(ctx, w, rec, reply)
	if errors.Is(err, errCut) {
		// The documented way to break off a connection without an end.
		panic(http.ErrAbortHandler)
	}
	// Any other error says that nobody reads any more.
}

var errCut = errors.New("the connection is cut on purpose")
