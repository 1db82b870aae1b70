// Package e2e_test holds the product against the world as it is: the module in real
// Envoy, behind the shipped envoy.yaml.
package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
	"ezat.io/chat-completions/translate/cases"
)

// corpusPatience bounds every wait of the corpus; nothing good comes near it.
const corpusPatience = 30 * time.Second

// TestCorpus runs every case that Envoy can show, over HTTP, through the shipped
// envoy.yaml and the module, in front of the strict stand-in. Cases of one plugin
// configuration share an Envoy.
func TestCorpus(t *testing.T) {
	all, err := cases.All()
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string][]*cases.Case{}
	var configs []string
	for _, c := range all {
		if !c.Runs(cases.Envoy) {
			continue
		}
		config := string(c.Config)
		if groups[config] == nil {
			configs = append(configs, config)
		}
		groups[config] = append(groups[config], c)
	}
	if len(groups) == 0 {
		t.Fatal("no case runs at this level")
	}
	slices.Sort(configs)
	for _, config := range configs {
		name := config
		if name == "" {
			name = "shipped configuration"
		}
		t.Run(name, func(t *testing.T) {
			l := newEnvoyLevel(t, config)
			for _, c := range groups[config] {
				t.Run(c.Name, func(t *testing.T) { l.run(t, c) })
			}
		})
	}
}

// envoyLevel is one Envoy in front of one stand-in.
type envoyLevel struct {
	envoy    *envoy.Envoy
	upstream *standin.Server
	client   *http.Client
	requests int // sent so far, each of which leaves a line in the access log
}

func newEnvoyLevel(t *testing.T, config string) *envoyLevel {
	server := standin.New(standin.Options{})
	listener := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		listener.CloseClientConnections()
		listener.Close()
	})
	options := envoy.Options{Upstreams: []string{listener.URL}}
	if config != "" {
		options.Plugin = config
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &envoyLevel{
		envoy:    envoy.New(t, options),
		upstream: server,
		client:   &http.Client{Transport: transport, Timeout: corpusPatience},
	}
}

// run sends the case twice: bodies in one piece with their lengths, and bodies in small
// pieces without.
func (l *envoyLevel) run(t *testing.T, c *cases.Case) {
	for _, pieces := range []bool{false, true} {
		outcome, err := l.outcome(t.Context(), c, pieces)
		if err != nil {
			t.Fatal(err)
		}
		if diffs := c.Compare(cases.Envoy, outcome); len(diffs) > 0 {
			t.Fatalf("%s\nbodies in pieces: %v\n%s", c.Comment, pieces, strings.Join(diffs, "\n"))
		}
		l.strict(t, c)
	}
}

// strict holds what went up against the stand-in's rules: it accepts all that the case's
// upstream accepts.
func (l *envoyLevel) strict(t *testing.T, c *cases.Case) {
	asked := slices.DeleteFunc(l.upstream.Requests(), isDownload)
	for i, got := range asked {
		if got.Refusal != nil && c.Calls[i].Answer.Status < 400 && !c.Forgives(i, got.Refusal.Status) {
			t.Errorf("the stand-in refuses what went up: %v\n%s", got.Refusal, got.Body)
		}
	}
}

// outcome is Envoy's level: the case's request over HTTP.
func (l *envoyLevel) outcome(ctx context.Context, c *cases.Case, pieces bool) (cases.Outcome, error) {
	l.upstream.Reset()
	l.upstream.Relax(standinRules(c)...)
	images := c.PlayDownloads()
	l.upstream.Script(script(c, images, pieces))
	request, err := http.NewRequestWithContext(ctx, c.Request.Method, l.envoy.URL+c.Request.Path, requestBody(c.Request.Body, pieces))
	if err != nil {
		return cases.Outcome{}, err
	}
	for _, f := range c.Request.Header {
		request.Header.Add(f[0], f[1])
	}
	response, err := l.client.Do(request)
	if err != nil {
		return cases.Outcome{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return cases.Outcome{}, fmt.Errorf("after status %d and %q: %w", response.StatusCode, body, err)
	}
	l.requests++
	outcome := cases.Outcome{Status: response.StatusCode, Header: fields(response.Header), Body: body}
	for _, r := range slices.DeleteFunc(l.upstream.Requests(), isDownload) {
		outcome.Upstream = append(outcome.Upstream, sentOf(r))
	}
	outcome.Downloads = images.Sent()
	if c.Usage != nil {
		outcome.Usage, err = l.usage(ctx)
	}
	return outcome, err
}

// usage waits for the line of the last request in the access log.
func (l *envoyLevel) usage(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, corpusPatience)
	defer cancel()
	for {
		lines, err := l.envoy.AccessLog()
		if err != nil {
			return nil, err
		}
		if len(lines) > l.requests {
			return nil, fmt.Errorf("%d lines in the access log for %d requests", len(lines), l.requests)
		}
		if len(lines) == l.requests {
			return lines[len(lines)-1].Usage, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d lines in the access log for %d requests: %w", len(lines), l.requests, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// isDownload tells the requests for images, whose servers the stand-in plays, too.
func isDownload(r *standin.Recorded) bool { return cases.IsDownload(fields(r.Header)) }

func sentOf(r *standin.Recorded) cases.Sent {
	header := append(fields(r.Header), [2]string{"authority", r.Host})
	return cases.Sent{Method: r.Method, Path: r.Path, Header: header, Body: r.Body}
}

func fields(h http.Header) cases.Header {
	var out cases.Header
	for name, values := range h {
		for _, value := range values {
			out = append(out, [2]string{strings.ToLower(name), value})
		}
	}
	return out
}

func standinRules(c *cases.Case) []standin.Rule {
	var rules []standin.Rule
	for _, name := range c.Relax {
		rules = append(rules, standin.Rule(name))
	}
	return rules
}

// script answers the case's calls in their order, and any further one with an error;
// image servers answer for themselves.
func script(c *cases.Case, images *cases.Downloads, pieces bool) func(*standin.Recorded) *standin.Response {
	calls := make(chan cases.Call, len(c.Calls))
	for _, call := range c.Calls {
		calls <- call
	}
	close(calls)
	return func(r *standin.Recorded) *standin.Response {
		if isDownload(r) {
			return response(c, images.Answer(sentOf(r)), pieces)
		}
		call, ok := <-calls
		if !ok {
			return standin.JSON(http.StatusInternalServerError, []byte(`{"type":"error","error":{"type":"api_error","message":"one call too many"}}`))
		}
		return response(c, call.Answer, pieces)
	}
}

func response(c *cases.Case, a cases.Answer, pieces bool) *standin.Response {
	reply := &standin.Response{Status: a.Status, Header: http.Header{"Request-Id": nil}, Body: a.Body}
	for _, f := range a.Header {
		reply.Header[http.CanonicalHeaderKey(f[0])] = []string{f[1]}
	}
	contentType, _ := a.Header.Get("content-type")
	_, hasLength := a.Header.Get("content-length")
	isStream := strings.HasPrefix(contentType, "text/event-stream")
	if hasLength || len(a.Body) == 0 || !pieces && !isStream {
		return reply
	}
	reply.Body, reply.Pieces = nil, []standin.Piece{}
	delivery := c.Deliveries(a.Body)[0]
	for _, d := range c.Deliveries(a.Body) {
		if pieces && d.Name == "random cuts 2" {
			delivery = d
		}
	}
	for _, piece := range delivery.Pieces {
		reply.Pieces = append(reply.Pieces, standin.Piece{Data: piece})
	}
	return reply
}

// requestBody is a body of known length, or one that comes in small chunks.
func requestBody(body []byte, pieces bool) io.Reader {
	if body == nil {
		return nil
	}
	if !pieces {
		return bytes.NewReader(body)
	}
	return &slowReader{bytes.NewReader(body)}
}

// slowReader hides its length and gives a few bytes at a time.
type slowReader struct{ r io.Reader }

func (s *slowReader) Read(p []byte) (int, error) {
	return s.r.Read(p[:min(len(p), 61)])
}
