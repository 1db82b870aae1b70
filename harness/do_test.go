package harness

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func request(headers ...string) Headers {
	return NewHeaders(append([]string{":authority", "test", ":path", "/", ":method", "POST", ":scheme", "http"}, headers...)...)
}

// TestDo takes exchanges through the guest with bodies cut and ended in every way.
func TestDo(t *testing.T) {
	for name, test := range map[string]struct {
		m    Message
		want []string // of the guest's lines about either body
	}{
		"no body":        {Message{}, nil},
		"one piece":      {Message{Body: []byte("hello world")}, []string{"11 0", "0 1"}},
		"HTTP/2":         {Message{Body: []byte("hello world"), End: EndWithData}, []string{"11 1"}},
		"pieces":         {Message{Pieces: [][]byte{[]byte("hello "), []byte("world")}}, []string{"6 0", "5 0", "0 1"}},
		"pieces, HTTP/2": {Message{Pieces: [][]byte{[]byte("hello "), []byte("world")}, End: EndWithData}, []string{"6 0", "5 1"}},
		"trailers":       {Message{Body: []byte("hello world"), Trailers: NewHeaders("t", "1")}, []string{"11 0"}},
		"only trailers":  {Message{Trailers: NewHeaders("t", "1")}, nil},
		"only an end":    {Message{Pieces: [][]byte{{}}}, []string{"0 0", "0 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := scriptHost(t, "", nil)
			question, answer := test.m, test.m
			question.Headers, answer.Headers = request(), NewHeaders(":status", "200", "content-type", "text/plain")
			var sent Message
			client, up, err := h.Do(t.Context(), Exchange{Request: question, Upstream: func(s Message) Message {
				sent = s
				return answer
			}})
			want(t, err)
			body := bytes.Join(test.m.Pieces, nil)
			if test.m.Body != nil {
				body = test.m.Body
			}
			for side, m := range map[string]Message{"upstream": up, "client": client, "sent": sent} {
				if !m.Ended || !bytes.Equal(m.Body, body) || m.Trailers.String() != test.m.Trailers.String() {
					t.Errorf("%s got %+v", side, m)
				}
			}
			for _, kind := range []string{"request_body ", "response_body "} {
				var got []string
				for _, line := range messages(h) {
					if rest, ok := strings.CutPrefix(line, kind); ok {
						got = append(got, rest)
					}
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("%s%q, want %q", kind, got, test.want)
				}
			}
		})
	}
}

// TestDoFails shows what Do finds wrong with an exchange.
func TestDoFails(t *testing.T) {
	body := Message{Headers: request(), Body: []byte("hello")}
	for name, test := range map[string]struct {
		script string
		x      Exchange
		is     error
		says   string
	}{
		"a request that is held":   {"request_headers: pause\nrequest_body: pause", Exchange{Request: body}, ErrStalled, "holds the request"},
		"a response that is held":  {"response_headers: pause", Exchange{Request: body}, ErrStalled, "holds the response"},
		"a stream that is reset":   {"request_body: close 0", Exchange{Request: body}, nil, ""},
		"a callout without answer": {`request_headers: pause; call callout 0 "" :method GET :path /c :authority c`, Exchange{Request: Message{Headers: request()}}, nil, "nobody answers the callout to callout /c"},
		"an old content-length upstream": {"request_body#1: buffer 0 set max 0 more",
			Exchange{Request: Message{Headers: request("content-length", "5"), Body: []byte("hello")}}, nil, "the request's content-length is 5, its body has 9 bytes"},
		"an old content-length": {`response_body#1: buffer 1 set max 0 more`, Exchange{Request: body, Upstream: func(Message) Message {
			return Message{Headers: NewHeaders(":status", "200", "content-length", "2"), Body: []byte("ok")}
		}}, nil, "the response's content-length is 2, its body has 6 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			h := scriptHost(t, test.script, nil)
			client, _, err := h.Do(t.Context(), test.x)
			if test.is != nil && !errors.Is(err, test.is) || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %v", err)
			}
			if test.is == nil && test.says == "" && err != nil {
				t.Errorf("got %v", err)
			}
			if name == "a stream that is reset" && !client.Reset {
				t.Errorf("client %+v", client)
			}
		})
	}
}

// transport is a RoundTripper made of a function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func respondWith(code int, body io.Reader, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(body), ContentLength: -1, ProtoMajor: 1, ProtoMinor: 1}
}

// callingOut holds a request until its callout has come back.
const callingOut = `
request_headers: pause; call callout 1000 ask :method POST :path /c?q :authority name :scheme http x-a b
http_call_response: map 6 get :status; buffer 4 get 0 100; effective; map 0 set x-late yes; resume 0
request_body: buffer 0 get 0 1
`

// TestCalloutByTransport carries callouts through a Transport.
func TestCalloutByTransport(t *testing.T) {
	for name, test := range map[string]struct {
		trip func(*http.Request) (*http.Response, error)
		want []string
	}{
		"answered": {func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil || string(body) != "ask" || r.ContentLength != 3 || r.URL.String() != "http://name/c?q" || r.Header.Get("X-A") != "b" {
				return nil, errors.New("another request was wanted")
			}
			return respondWith(200, strings.NewReader("fine"), "K", "v"), nil
		}, []string{"http_call_response 0 4 0", `map get :status 0 "200"`, `buffer get 0 "fine"`}},
		"refused": {func(*http.Request) (*http.Response, error) { return nil, errors.New("no") },
			[]string{"http_call_response 0 95 0", `map get :status 0 "503"`}},
		"cut": {func(*http.Request) (*http.Response, error) {
			return respondWith(200, io.MultiReader(strings.NewReader("fi"), broken{})), nil
		}, []string{"http_call_response 1 0 0"}},
		"too long": {func(*http.Request) (*http.Response, error) {
			return respondWith(200, strings.NewReader(strings.Repeat("x", 101))), nil
		}, []string{"http_call_response 1 0 0"}},
		"too many headers": {func(*http.Request) (*http.Response, error) {
			return respondWith(200, strings.NewReader(""), "K", strings.Repeat("x", 70000)), nil
		}, []string{`map get :status 0 "503"`}},
	} {
		t.Run(name, func(t *testing.T) {
			h := scriptHost(t, callingOut, func(c *Config) {
				c.Clusters["callout"] = Cluster{Transport: transport(test.trip)}
				c.CalloutBytesMax = 100
			})
			_, up, err := h.Do(t.Context(), Exchange{Request: Message{Headers: request()}})
			want(t, err)
			if up.Headers.Get("x-late") != "yes" {
				t.Errorf("upstream got %s", up.Headers)
			}
			for _, line := range test.want {
				wantLine(t, h, line)
			}
		})
	}
}

// broken is a body that ends in an error.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestCalloutTimesOut shows a callout that takes too long: its Transport is told,
// and what it still brings goes nowhere.
func TestCalloutTimesOut(t *testing.T) {
	clock := NewFakeClock()
	told := make(chan struct{})
	started := make(chan struct{})
	h := scriptHost(t, callingOut, func(c *Config) {
		c.Clock = clock
		c.Clusters["callout"] = Cluster{Transport: transport(func(r *http.Request) (*http.Response, error) {
			close(started)
			<-r.Context().Done()
			close(told)
			return respondWith(200, strings.NewReader("late")), nil
		})}
	})
	s := post(t, h, "/")
	<-started
	clock.Advance(999 * time.Millisecond)
	if s.Upstream().Began {
		t.Fatal("resumed too early")
	}
	clock.Advance(time.Millisecond)
	<-told
	wantLine(t, h, `map get :status 0 "504"`)
	wantLine(t, h, `buffer get 0 "upstream request timeout"`)
	if !s.Upstream().Began {
		t.Error("not resumed")
	}
}

// TestCalloutOutlivesItsStream shows that a client that leaves cancels nothing.
func TestCalloutOutlivesItsStream(t *testing.T) {
	h := scriptHost(t, callingOut, nil)
	s := post(t, h, "/")
	s.ClientLeaves()
	calls := h.Callouts()
	if len(calls) != 1 {
		t.Fatalf("%d callouts wait", len(calls))
	}
	calls[0].Respond(Message{Headers: NewHeaders(":status", "200"), Body: []byte("fine"), Trailers: NewHeaders("a", "b")})
	calls[0].Cut() // it is answered already
	wantLine(t, h, "http_call_response 0 4 1")
	wantLine(t, h, "effective 2")
	if n := len(h.Callouts()); n != 0 {
		t.Errorf("%d callouts wait", n)
	}
}

// TestCalloutOfDeadGuest shows that answers for a VM that has failed go nowhere.
func TestCalloutOfDeadGuest(t *testing.T) {
	h := scriptHost(t, callingOut+"\nrequest_headers@/bad: panic", func(c *Config) { c.PluginConfig = "request_headers@/bad: panic gone\n" + callingOut })
	post(t, h, "/")
	call := h.Callouts()[0]
	wantStatus(t, get(t, h, "/bad"), "503")
	call.Respond(Message{Headers: NewHeaders(":status", "200")})
	for _, m := range messages(h) {
		if strings.HasPrefix(m, "http_call_response") {
			t.Error("a dead guest was called back")
		}
	}
}

// TestRecorder shows what it keeps, and that keys are not shown.
func TestRecorder(t *testing.T) {
	var told []Recorded
	rec := &Recorder{CountMax: 2, BodyBytesMax: 4, OnRequest: func(r Recorded) { told = append(told, r) }, Next: transport(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			if _, err := io.ReadAll(r.Body); err != nil {
				return nil, err
			}
			want(t, r.Body.Close())
		}
		return respondWith(200, strings.NewReader("")), nil
	})}
	for _, body := range []string{"", "abcdef", "xyz"} {
		var reader io.Reader
		if body != "" {
			reader = strings.NewReader(body)
		}
		req, err := http.NewRequest("POST", "http://up/path", reader)
		want(t, err)
		req.Header.Set("X-Api-Key", "secret")
		req.Header.Set("X-Other", "plain")
		_, err = rec.RoundTrip(req)
		want(t, err)
	}
	got := rec.Requests()
	if len(got) != 2 || string(got[0].Body) != "abcd" || !got[0].Truncated || string(got[1].Body) != "xyz" || got[1].Truncated {
		t.Errorf("kept %+v", got)
	}
	if len(told) != 3 || string(told[1].Body) != "abcd" {
		t.Errorf("told %+v", told)
	}
	shown := got[0].Redacted()
	if shown.Header.Get("X-Api-Key") != "(not shown)" || shown.Header.Get("X-Other") != "plain" || got[0].Header.Get("X-Api-Key") != "secret" {
		t.Errorf("redacted %v", shown.Header)
	}
}
