package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"ezat.io/chat-completions/harness/internal/play"
)

const (
	startWithin = 60 * time.Second
	settleFor   = 120 * time.Millisecond // nothing seen for so long: the step is over
	startFor    = time.Second            // the same for the start, where VMs load one after the other
	stepWithin  = 10 * time.Second
)

// guestLine is a line of the guest's log: Envoy names the plugin for streams, but not for its root context.
var guestLine = regexp.MustCompile(`wasm log(?: p)? r v: (.*)$`)

// stage is one Envoy with a client before and upstreams behind it.
type stage struct {
	mu         sync.Mutex
	transcript *play.Transcript
	last       time.Time // when something was seen last

	up, callout net.Listener
	port        int // Envoy's
	envoy       *exec.Cmd
	ended       chan error

	clients   map[string]*side
	upstreams map[string]*side
	callouts  []*side
}

// side is a connection that messages are written to.
type side struct {
	conn    net.Conn
	chunked bool
}

func newStage(c *play.Case) (*stage, error) {
	s := &stage{
		transcript: play.NewTranscript(),
		clients:    map[string]*side{},
		upstreams:  map[string]*side{},
		ended:      make(chan error, 1),
	}
	var err error
	if s.up, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if s.callout, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.port = port(free)
	free.Close()
	go s.accept(s.up, s.reached)
	go s.accept(s.callout, s.called)
	return s, nil
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func (s *stage) close() {
	if s.envoy != nil && s.envoy.Process != nil {
		_ = s.envoy.Process.Signal(os.Interrupt)
		select {
		case <-s.ended:
		case <-time.After(5 * time.Second):
			_ = s.envoy.Process.Kill()
			<-s.ended
		}
	}
	s.up.Close()
	s.callout.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		c.conn.Close()
	}
}

// start runs Envoy and waits until it listens.
func (s *stage) start(envoy, config string, verbose bool) error {
	s.envoy = exec.Command(envoy, "-c", config, "--concurrency", "1", "--use-dynamic-base-id",
		"-l", "error", "--component-log-level", "wasm:info", "--log-format", "%v", "--file-flush-interval-msec", "10",
		"--disable-hot-restart")
	out, in := io.Pipe()
	s.envoy.Stdout, s.envoy.Stderr = in, in
	if err := s.envoy.Start(); err != nil {
		return err
	}
	go func() { s.ended <- s.envoy.Wait(); in.Close() }()
	var log strings.Builder
	go s.read(out, &log, verbose)
	for deadline := time.Now().Add(startWithin); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))); err == nil {
			return conn.Close()
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			s.mu.Lock()
			defer s.mu.Unlock()
			return fmt.Errorf("envoy ended: %w\n%s", err, log.String())
		default:
		}
	}
	return errors.New("envoy does not listen")
}

// read sorts Envoy's log lines.
func (s *stage) read(out io.Reader, log *strings.Builder, verbose bool) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		line := lines.Text()
		if verbose {
			fmt.Fprintln(os.Stderr, line)
		}
		s.mu.Lock()
		log.WriteString(line + "\n")
		if found := guestLine.FindStringSubmatch(line); found != nil {
			s.transcript.Guest(found[1])
			s.last = time.Now()
		} else if text, ok := strings.CutPrefix(line, "access "); ok {
			s.transcript.Line("log", text)
			s.last = time.Now()
		}
		s.mu.Unlock()
	}
}

// settle waits until nothing has been seen for a while.
func (s *stage) settle(while time.Duration) {
	s.mu.Lock()
	s.last = time.Now()
	s.mu.Unlock()
	for {
		time.Sleep(while / 4)
		s.mu.Lock()
		quiet := time.Since(s.last)
		s.mu.Unlock()
		if quiet > while {
			return
		}
	}
}

// note adds what a side saw.
func (s *stage) note(f func(*play.Transcript)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.transcript)
	s.last = time.Now()
}

// do plays one step.
func (s *stage) do(step play.Step) error {
	switch {
	case step.Who == "wait":
		ms, err := strconv.Atoi(step.What)
		time.Sleep(time.Duration(ms) * time.Millisecond)
		return err
	case step.Who == "callout":
		return s.answerCallout(step)
	case step.What == "request":
		return s.request(step)
	case strings.HasPrefix(step.What, "up"):
		return s.answer(step)
	}
	return s.client(step)
}

// request opens a connection and sends a head.
func (s *stage) request(step play.Step) error {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	if err != nil {
		return err
	}
	headers, chunked := play.Head(step.Words[2:])
	s.mu.Lock()
	s.clients[step.Who] = &side{conn: conn, chunked: chunked}
	s.mu.Unlock()
	head := step.Words[0] + " " + step.Words[1] + " HTTP/1.1\r\nhost: test\r\nx-stream: " + step.Who + "\r\n"
	if _, err := io.WriteString(conn, head+rest(headers, chunked)); err != nil {
		return err
	}
	go s.listen(step.Who, step.Words[0], conn)
	return nil
}

// rest is the end of a head.
func rest(headers [][2]string, chunked bool) string {
	text := ""
	for _, h := range headers {
		text += h[0] + ": " + h[1] + "\r\n"
	}
	if chunked {
		text += "transfer-encoding: chunked\r\n"
	}
	return text + "\r\n"
}

// client plays a client's step on an open connection.
func (s *stage) client(step play.Step) error {
	s.mu.Lock()
	c := s.clients[step.Who]
	s.mu.Unlock()
	if c == nil {
		return errors.New("no such stream")
	}
	if step.What == "leave" {
		return c.conn.Close()
	}
	return c.write(step.What, step.Words)
}

// write sends a piece of a body or its end.
func (u *side) write(what string, words []string) error {
	var err error
	switch what {
	case "send":
		data := strings.Join(words, " ")
		if u.chunked {
			return writeChunk(u.conn, data)
		}
		_, err = io.WriteString(u.conn, data)
	case "end":
		_, err = io.WriteString(u.conn, "0\r\n\r\n")
	case "trailers":
		headers, _ := play.Head(words)
		_, err = io.WriteString(u.conn, "0\r\n"+rest(headers, false))
	default:
		err = errors.New("unknown step")
	}
	return err
}

func writeChunk(w io.Writer, data string) error {
	_, err := fmt.Fprintf(w, "%x\r\n%s\r\n", len(data), data)
	return err
}

// listen reads what the client gets.
func (s *stage) listen(who, method string, conn net.Conn) {
	side := who + " client"
	br := bufio.NewReader(conn)
	for answered := false; ; answered = true {
		resp, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			if !answered && !errors.Is(err, net.ErrClosed) {
				s.note(func(t *play.Transcript) { t.Line(side, "connection closed") })
			}
			return
		}
		headers := pairs(resp.Header)
		s.note(func(t *play.Transcript) { t.Head(side, strconv.Itoa(resp.StatusCode), headers) })
		s.drain(side, resp.Body, func() http.Header { return resp.Trailer })
	}
}

func pairs(h http.Header) [][2]string {
	var out [][2]string
	for name, values := range h {
		for _, v := range values {
			out = append(out, [2]string{strings.ToLower(name), v})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i][0] < out[j][0] })
	return out
}

// drain notes a body, its trailers and how it ended.
func (s *stage) drain(side string, body io.Reader, trailer func() http.Header) {
	buf := make([]byte, 1<<16)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			s.note(func(t *play.Transcript) { t.Body(side, buf[:n]) })
		}
		if err == nil {
			continue
		}
		s.note(func(t *play.Transcript) {
			if errors.Is(err, net.ErrClosed) {
				return // closed by the play itself
			}
			if err != io.EOF {
				t.Line(side, "cut")
				return
			}
			for _, h := range pairs(trailer()) {
				t.Line(side, "trailer "+h[0]+": "+h[1])
			}
			t.Line(side, "end")
		})
		return
	}
}

// accept takes an upstream's connections.
func (s *stage) accept(l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go serve(conn)
	}
}

// reached reads the requests that reach the upstream over one connection.
func (s *stage) reached(conn net.Conn) {
	br := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		who := req.Header.Get("x-stream")
		headers := append(pairs(req.Header), [2]string{"host", req.Host})
		s.note(func(t *play.Transcript) {
			t.Head(who+" up", req.Method+" "+req.RequestURI, headers)
			s.upstreams[who] = &side{conn: conn}
		})
		s.drain(who+" up", req.Body, func() http.Header { return req.Trailer })
	}
}

// called reads callouts.
func (s *stage) called(conn net.Conn) {
	br := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		s.note(func(t *play.Transcript) {
			t.Head("callout up", req.Method+" "+req.RequestURI, append(pairs(req.Header), [2]string{"host", req.Host}))
			t.Body("callout up", body)
			s.callouts = append(s.callouts, &side{conn: conn})
		})
	}
}

// answer plays an upstream's step.
func (s *stage) answer(step play.Step) error {
	var u *side
	for deadline := time.Now().Add(stepWithin); u == nil; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		u = s.upstreams[step.Who]
		s.mu.Unlock()
		if time.Now().After(deadline) {
			return errors.New("the request has not reached the upstream")
		}
	}
	switch step.What {
	case "up":
		headers, chunked := play.Head(step.Words[1:])
		u.chunked = chunked
		_, err := io.WriteString(u.conn, "HTTP/1.1 "+step.Words[0]+" X\r\n"+rest(headers, chunked))
		return err
	case "upreset":
		return u.conn.Close()
	}
	return u.write(strings.TrimPrefix(step.What, "up"), step.Words)
}

// answerCallout answers the oldest waiting callout.
func (s *stage) answerCallout(step play.Step) error {
	s.mu.Lock()
	if len(s.callouts) == 0 {
		s.mu.Unlock()
		return errors.New("no callout waits")
	}
	u := s.callouts[0]
	s.callouts = s.callouts[1:]
	s.mu.Unlock()
	switch step.What {
	case "reset":
		return u.conn.Close()
	case "cut":
		if _, err := io.WriteString(u.conn, "HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\ncut"); err != nil {
			return err
		}
		return u.conn.Close()
	}
	headers, _ := play.Head(step.Words[1:])
	headers = append(headers, [2]string{"content-length", strconv.Itoa(len(step.Words[0]))})
	_, err := io.WriteString(u.conn, "HTTP/1.1 "+step.What+" X\r\n"+rest(headers, false)+step.Words[0])
	return err
}
