package hostile_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
)

// patience bounds every wait of these tests; nothing good comes near it.
const patience = 90 * time.Second

// What clients send that nobody else may see has this in it: keys, texts, names, queries.
const marker = "mark-"

const clientKey = "sk-ant-" + marker + "key"

// plugin is the shipped configuration, but for literal addresses of loopback as image
// servers.
const plugin = `{"upstream":{"authority":"api.anthropic.com"},"images":{"allow_private":true}}`

// imageIP is the loopback address that plays a public one.
const imageIP = "127.0.1.1"

var png, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

// world is one Envoy and all that it can reach.
type world struct {
	envoy  *envoy.Envoy
	up     *upstream
	images *imageServer
	client *http.Client
	marks  atomic.Int64
	again  atomic.Int64 // how often patient has asked again

	mu      sync.Mutex
	dialled []net.Conn
}

func newWorld(t *testing.T, o envoy.Options) *world {
	t.Helper()
	w := &world{up: newUpstream(t), images: newImageServer(t), client: newClient(t, false)}
	o.Upstreams, o.Plugin = []string{w.up.url}, plugin
	// What happens to the log each test says itself, so that the class of a fault is known.
	o.FaultsExpected = true
	o.Edits = append(o.Edits, envoy.ImageDNS(publicLoopback))
	w.envoy = envoy.New(t, o)
	return w
}

// publicLoopback makes 127.0.0.0/24 the only private part of 127.0.0.0/8.
func publicLoopback(c *envoy.Config, place []any) error {
	place = envoy.At(place, "resolved_address_filter", "ranges")
	list, err := c.Get(place...)
	if err != nil {
		return err
	}
	ranges, _ := list.([]any)
	i := slices.IndexFunc(ranges, func(r any) bool { return r.(map[string]any)["address_prefix"] == "127.0.0.0" })
	if i < 0 {
		return errors.New("loopback is not in the list of private addresses")
	}
	return c.Set(24, envoy.At(place, i, "prefix_len")...)
}

// newClient returns a client of one protocol.
func newClient(t testing.TB, http2 bool) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{Protocols: protocols, DisableCompression: true, MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// upstream is the strict stand-in, and plays what a test says where a message asks for
// it: "play:NAME;" anywhere near the end of the body.
type upstream struct {
	*standin.Server
	url string

	mu      sync.Mutex
	plays   map[string]func(conn net.Conn)
	sizes   map[string]int // of bodies, by their marks
	strange []string       // requests that no translation makes
}

func newUpstream(t testing.TB) *upstream {
	u := &upstream{
		Server: standin.New(standin.Options{RecordsMax: 1}), plays: map[string]func(net.Conn){}, sizes: map[string]int{},
	}
	listener := httptest.NewUnstartedServer(u)
	listener.Config.ErrorLog = quiet
	listener.Start()
	t.Cleanup(func() {
		u.Server.Close()
		listener.CloseClientConnections()
		listener.Close()
	})
	u.url = listener.URL
	return u
}

// quiet takes the complaints of test servers about those who go away.
var quiet = log.New(io.Discard, "", 0)

var (
	playAsked = regexp.MustCompile(`play:([a-z0-9 ,-]+);`)
	marked    = regexp.MustCompile(marker + `[0-9]+`)
)

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 256<<20))
	if err != nil {
		panic(http.ErrAbortHandler) // Envoy has given up
	}
	end := body[max(0, len(body)-4096):]
	asked := playAsked.FindSubmatch(end)
	u.mu.Lock()
	if r.URL.Path != "/v1/messages" && r.URL.Path != "/v1/models" || r.Header.Get("x-api-key") != clientKey {
		u.strange = append(u.strange, r.Method+" "+r.URL.Path)
	}
	if mark := marked.Find(end); mark != nil {
		u.sizes[string(mark)] = len(body)
	}
	var play func(net.Conn)
	if asked != nil {
		play = u.plays[string(asked[1])]
	}
	u.mu.Unlock()
	if play == nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		u.Server.ServeHTTP(w, r)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err) // HTTP/1.1 can always be taken over
	}
	defer conn.Close()
	play(conn)
}

// play sets what answers a message that asks for it; the connection is closed behind it.
func (u *upstream) play(name string, f func(conn net.Conn)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.plays[name] = f
}

// size takes the size of the body that went up with a mark; 0: none did.
func (u *upstream) size(mark string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.sizes[mark]
	delete(u.sizes, mark)
	return n
}

// imageServer serves pictures, and keeps what it was asked.
type imageServer struct {
	url string // http://HOST:PORT

	mu   sync.Mutex
	seen []*http.Request
}

func newImageServer(t testing.TB) *imageServer {
	l, err := net.Listen("tcp4", imageIP+":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &imageServer{url: "http://" + l.Addr().String()}
	server := httptest.NewUnstartedServer(s)
	server.Listener.Close()
	server.Listener, server.Config.ErrorLog = l, quiet
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// ServeHTTP serves /png, /large with 5 MB, /silent, which says nothing, /endless, and
// nothing else.
func (s *imageServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if len(s.seen) < 10_000 {
		s.seen = append(s.seen, r)
	}
	s.mu.Unlock()
	switch r.URL.Path {
	case "/png":
		w.Write(png)
	case "/large":
		w.Write(append(slices.Clone(png), bytes.Repeat([]byte("x"), 5<<20)...))
	case "/silent":
		<-r.Context().Done()
	case "/endless":
		for piece := bytes.Repeat(png, 1000); ; {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	default:
		http.NotFound(w, r)
	}
}

func (s *imageServer) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// mark returns a mark that nothing else has.
func (w *world) mark() string { return fmt.Sprint(marker, w.marks.Add(1)) }

// question is a small chat about a text.
func question(text string, stream bool) string {
	return fmt.Sprintf(`{"model":"anthropic/claude-sonnet-5-5","stream":%v,"max_tokens":64,"messages":[{"role":"user","content":%q}]}`, stream, text)
}

// reply is an answer that has been read.
type reply struct {
	Status int
	Header http.Header
	Body   string
}

// post sends one body.
func (w *world) post(ctx context.Context, c *http.Client, body string) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.envoy.URL+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("authorization", "Bearer "+clientKey)
	request.Header.Set("content-type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	r := reply{response.StatusCode, response.Header, string(text)}
	if err != nil {
		return r, fmt.Errorf("after %s and %.200q: %w", response.Status, text, err)
	}
	return r, nil
}

// lostTimes is how often a request may be lost on a connection that its upstream closes.
const lostTimes = 3

// patient is post for where upstreams hang up behind a good answer: a request that is just
// being sent on that connection is lost, and Envoy must not send it twice. It becomes the
// 503 that clients try again by themselves, and so does this one.
func (w *world) patient(ctx context.Context, c *http.Client, body string) (r reply, err error) {
	for range lostTimes {
		r, err = w.post(ctx, c, body)
		if err != nil || r.Status != http.StatusServiceUnavailable || !strings.Contains(r.Body, `"code":"overloaded"`) {
			return r, err
		}
		w.again.Add(1)
	}
	return r, err
}

// ask asks a small question and wants its own answer.
func (w *world) ask(ctx context.Context, c *http.Client, stream bool) error {
	mark := w.mark()
	r, err := w.patient(ctx, c, question("Repeat after me: "+mark, stream))
	if err != nil {
		return err
	}
	w.up.size(mark)
	return r.wantText(mark, stream)
}

// wantText says whether a reply is the whole and only answer with this text.
func (r reply) wantText(text string, stream bool) error {
	got, err := r.text(stream)
	if err != nil {
		return err
	}
	if got != text {
		return fmt.Errorf("got the answer %.200q, want %q", got, text)
	}
	return nil
}

// text reads a whole answer, or a stream's chunks.
func (r reply) text(stream bool) (string, error) {
	wrong := func(what string) (string, error) {
		return "", fmt.Errorf("%s: %d %v %.500q", what, r.Status, r.Header, r.Body)
	}
	if r.Status != http.StatusOK {
		return wrong("no answer")
	}
	pieces := []string{r.Body}
	if stream {
		body, whole := strings.CutSuffix(r.Body, "data: [DONE]\n\n")
		if !whole {
			return wrong("no end")
		}
		pieces = strings.Split(body, "\n")
	}
	var text strings.Builder
	for _, piece := range pieces {
		if stream && (piece == "" || piece == ": ping") {
			continue
		}
		var chunk struct {
			Object  string
			Choices []struct {
				Message, Delta struct{ Content string }
			}
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(piece, "data: ")), &chunk); err != nil || !strings.HasPrefix(chunk.Object, "chat.completion") {
			return wrong("no chunk")
		}
		for _, c := range chunk.Choices {
			text.WriteString(c.Message.Content + c.Delta.Content)
		}
	}
	return text.String(), nil
}

// wantError says whether a reply is an error of OpenAI's shape.
func (r reply) wantError() error {
	var e struct {
		Error *struct {
			Message, Type string
			Param, Code   *string
		}
	}
	decoder := json.NewDecoder(strings.NewReader(r.Body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil || e.Error == nil || e.Error.Message == "" || e.Error.Type == "" {
		return fmt.Errorf("no error of OpenAI's shape: %d %.500q", r.Status, r.Body)
	}
	if len(r.Body) > 8<<10 {
		return fmt.Errorf("an error of %d bytes: %.200q", len(r.Body), r.Body)
	}
	return nil
}

// neighbour asks small questions all the time, whole and as streams, over HTTP/1.1 and
// HTTP/2, and must get the right answers.
type neighbour struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	asked  int
	worst  time.Duration
	faults []string
}

func (w *world) neighbour(t *testing.T) *neighbour {
	ctx, cancel := context.WithCancel(t.Context())
	n := &neighbour{cancel: cancel}
	for _, http2 := range []bool{false, true} {
		c := newClient(t, http2)
		n.done.Go(func() {
			for stream := false; ctx.Err() == nil; stream = !stream {
				began := time.Now()
				err := w.ask(t.Context(), c, stream)
				n.note(time.Since(began), err)
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	return n
}

func (n *neighbour) note(took time.Duration, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	n.worst = max(n.worst, took)
	if err != nil {
		n.faults = append(n.faults, err.Error())
	}
}

// goOn waits until the neighbour has asked a few questions more.
func (n *neighbour) goOn(t *testing.T) {
	t.Helper()
	asked := func() int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.asked
	}
	if before := asked(); !await(func() bool { return asked() >= before+8 }) {
		t.Error("the neighbour asks no more")
	}
}

// stop ends the neighbour and says what went wrong.
func (n *neighbour) stop(t *testing.T) {
	t.Helper()
	n.cancel()
	n.done.Wait()
	t.Logf("a neighbour asked %d times, the worst took %v", n.asked, n.worst.Round(time.Millisecond))
	if n.asked == 0 {
		t.Error("the neighbour never asked")
	}
	if len(n.faults) > 0 {
		t.Errorf("%d of a neighbour's %d questions went wrong; the first:\n%s", len(n.faults), n.asked, n.faults[0])
	}
}

// tally counts what many goroutines say, of which the first is shown.
type tally struct {
	mu    sync.Mutex
	count int
	first error
}

func (c *tally) add(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count++; c.first == nil {
		c.first = err
	}
}

// report fails the test when something was said.
func (c *tally) report(t *testing.T, what string, of int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count > 0 {
		t.Errorf("%d of %d %s; the first: %v", c.count, of, what, c.first)
	}
}

// state is what an attack must not change.
type state struct {
	faults int   // lines of the log
	vms    int64 // that were ever made
}

func (w *world) state(t *testing.T) state {
	t.Helper()
	stats := w.stats(t)
	created, ok := stats["wasm.envoy.wasm.runtime.v8.created"]
	if !ok {
		t.Fatal("Envoy does not count its VMs")
	}
	return state{len(w.envoy.Faults()), created}
}

func (w *world) stats(t *testing.T) map[string]int64 {
	t.Helper()
	stats, err := w.envoy.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// attack runs one class beside a neighbour, and holds what is left behind it against
// what was there before.
func (w *world) attack(t *testing.T, f func(t *testing.T)) {
	before := w.state(t)
	n := w.neighbour(t)
	f(t)
	n.stop(t)
	w.wantIdle(t)
	if again := w.again.Swap(0); again > 0 && !strings.HasSuffix(t.Name(), "/upstreams") {
		t.Errorf("%d questions had to be asked again, and no upstream has hung up", again)
	}
	after := w.state(t)
	if after.vms != before.vms {
		t.Errorf("%d VMs were made anew", after.vms-before.vms)
	}
	if after.faults != before.faults {
		faults := w.envoy.Faults()[before.faults:]
		t.Errorf("the log has %d faults; the first:\n%s", len(faults), strings.Join(faults[:min(5, len(faults))], "\n"))
	}
	for i := range 4 {
		if err := w.ask(t.Context(), newClient(t, i%2 == 1), i >= 2); err != nil {
			t.Errorf("a question behind the attack: %v", err)
		}
	}
	w.up.mu.Lock()
	defer w.up.mu.Unlock()
	if len(w.up.strange) > 0 {
		t.Errorf("%d requests went up that no translation makes: %q", len(w.up.strange), w.up.strange[:min(5, len(w.up.strange))])
		w.up.strange = nil
	}
}

// underWay are the gauges of what clients and upstreams have open.
var underWay = []string{
	"http.openai.downstream_rq_active", "cluster.anthropic.upstream_rq_active", "http.image_egress.downstream_rq_active",
	"cluster.image_http.upstream_rq_active", "cluster.image_https.upstream_rq_active",
}

// wantIdle waits until nothing is under way.
func (w *world) wantIdle(t *testing.T) {
	t.Helper()
	w.client.CloseIdleConnections()
	w.hangUp()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		stats, busy := w.stats(t), ""
		for _, name := range underWay {
			n, ok := stats[name]
			if !ok {
				t.Fatalf("Envoy has no gauge %s", name)
			}
			if n != 0 {
				busy += fmt.Sprintf(" %s: %d", name, n)
			}
		}
		if busy == "" {
			return
		}
		if time.Now().After(end) {
			t.Errorf("still under way:%s", busy)
			return
		}
	}
}

// dial opens a raw connection.
func (w *world) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", w.envoy.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	w.mu.Lock()
	w.dialled = append(w.dialled, conn)
	w.mu.Unlock()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// head is the head of a raw request, without the line that ends it.
func head(fields ...string) string {
	return "POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer " + clientKey + "\r\n" + strings.Join(append(fields, ""), "\r\n")
}

// hangUp closes the connections of dial.
func (w *world) hangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.dialled {
		conn.Close()
	}
	w.dialled = nil
}

// raw is a whole raw request.
func raw(body string, fields ...string) string {
	return head(append(fields, fmt.Sprint("content-length: ", len(body)))...) + "\r\n" + body
}
