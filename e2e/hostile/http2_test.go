package hostile_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"
)

// frames is a raw HTTP/2 connection that keeps to no rule but the test's. What comes is
// read all the time; only its ends are kept.
type frames struct {
	conn   net.Conn
	out    *bufio.Writer
	header bytes.Buffer
	encode *hpack.Encoder
	closed chan struct{} // when Envoy has closed the connection

	mu       sync.Mutex
	answers  map[uint32]string // :status of streams, once it came
	data     int               // bytes of bodies
	ended    int               // streams that Envoy has ended, or reset
	goneAway bool
}

// Types and flags of frames (RFC 9113, 6).
const (
	frameData, frameHeaders, framePriority, frameReset, frameSettings       = 0, 1, 2, 3, 4
	framePush, framePing, frameGoAway, frameWindowUpdate, frameContinuation = 5, 6, 7, 8, 9

	flagEndStream, flagAck, flagEndHeaders, flagPadded = 1, 1, 4, 8

	settingInitialWindow = 4
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// frames opens a connection. Its settings are pairs of number and value.
func (w *world) frames(t *testing.T, settings ...uint32) *frames {
	t.Helper()
	conn := w.dial(t)
	f := &frames{conn: conn, out: bufio.NewWriter(conn), closed: make(chan struct{}), answers: map[uint32]string{}}
	f.encode = hpack.NewEncoder(&f.header)
	if _, err := io.WriteString(f.out, preface); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.settings(settings...), f.windowUpdate(0, 1<<30), f.out.Flush()); err != nil {
		t.Fatal(err)
	}
	go f.read()
	return f
}

// write puts one frame behind those that wait to be sent.
func (f *frames) write(kind, flags byte, stream uint32, payload []byte) error {
	n := len(payload)
	_, err := f.out.Write(binary.BigEndian.AppendUint32([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}, stream))
	if err == nil {
		_, err = f.out.Write(payload)
	}
	return err
}

func (f *frames) settings(pairs ...uint32) error {
	var payload []byte
	for i := 0; i < len(pairs); i += 2 {
		payload = binary.BigEndian.AppendUint16(payload, uint16(pairs[i]))
		payload = binary.BigEndian.AppendUint32(payload, pairs[i+1])
	}
	return f.write(frameSettings, 0, 0, payload)
}

func (f *frames) reset(stream uint32) error {
	return f.write(frameReset, 0, stream, []byte{0, 0, 0, 8})
}

func (f *frames) windowUpdate(stream, n uint32) error {
	return f.write(frameWindowUpdate, 0, stream, binary.BigEndian.AppendUint32(nil, n))
}

// read takes what comes until the connection is closed.
func (f *frames) read() {
	defer close(f.closed)
	in := bufio.NewReader(f.conn)
	decode := hpack.NewDecoder(4096, nil)
	for {
		var head [9]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(in, payload); err != nil {
			return
		}
		f.note(head[3], head[4], binary.BigEndian.Uint32(head[5:]), payload, decode)
	}
}

func (f *frames) note(kind, flags byte, stream uint32, payload []byte, decode *hpack.Decoder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch kind {
	case frameHeaders: // Envoy sends a block in one frame, as long as it is short
		if fields, err := decode.DecodeFull(payload); err == nil && len(fields) > 0 && fields[0].Name == ":status" {
			f.answers[stream] = fields[0].Value
		}
	case frameData:
		f.data += len(payload)
	case frameReset:
		f.ended++
	case frameGoAway:
		f.goneAway = true
	}
	if (kind == frameHeaders || kind == frameData) && flags&flagEndStream != 0 {
		f.ended++
	}
}

// state is what has come so far.
func (f *frames) state() (answers, ended, data int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.answers), f.ended, f.data
}

func (f *frames) status(stream uint32) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answers[stream]
}

// over says whether Envoy has closed the connection, or has said that it will.
func (f *frames) over() bool {
	select {
	case <-f.closed:
		return true
	default:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.goneAway
}

// block is a header block.
func (f *frames) block(fields ...string) []byte {
	f.header.Reset()
	for i := 0; i < len(fields); i += 2 {
		if err := f.encode.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			panic(err) // a buffer takes everything
		}
	}
	return bytes.Clone(f.header.Bytes())
}

// usual are the headers of a request, with more behind them.
func usual(more ...string) []string {
	return append([]string{
		":method", "POST", ":scheme", "http", ":authority", "x", ":path", "/openai/v1/chat/completions", "authorization", "Bearer " + clientKey,
	}, more...)
}

// begin opens a stream with its headers.
func (f *frames) begin(id uint32, end bool, fields ...string) error {
	flags := byte(flagEndHeaders)
	if end {
		flags |= flagEndStream
	}
	return f.write(frameHeaders, flags, id, f.block(fields...))
}

// ask is a whole request on a stream, and sends it.
func (f *frames) ask(id uint32, body string) error {
	return errors.Join(f.begin(id, false, usual()...), f.write(frameData, flagEndStream, id, []byte(body)), f.out.Flush())
}

// await waits until something is there.
func await(what func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if what() {
			return true
		}
	}
	return false
}

// testHTTP2: what only HTTP/2 makes possible.
func (w *world) testHTTP2(t *testing.T) {
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"rapid resets", w.rapidResets}, {"many streams", w.manyStreams}, {"closed window", w.closedWindow},
		{"floods", w.floods}, {"odd requests", w.oddRequests}, {"interleaved uploads", w.interleavedUploads},
	} {
		t.Run(part.name, part.run)
	}
}

// rapidResets: connections that ask and take it back at once, over and over. Envoy may
// close them; new ones come then.
func (w *world) rapidResets(t *testing.T) {
	body := question("play:silent;", false)
	var all sync.WaitGroup
	const rounds, connections, batches, batch = 5, 12, 60, 20
	for i := range rounds * connections {
		if i%connections == 0 {
			all.Wait()
		}
		f := w.frames(t)
		all.Go(func() {
			defer func() { f.conn.Close() }()
			id := uint32(1)
			for range batches {
				var err error
				for range batch {
					err = errors.Join(err, f.ask(id, body), f.reset(id))
					id += 2
				}
				if err != nil {
					return // closed for it
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	all.Wait()
}

// manyStreams: a hundred at once are answered; more than that are refused one by one, or
// with their connection.
func (w *world) manyStreams(t *testing.T) {
	f := w.frames(t)
	for i := range 100 {
		if err := f.ask(uint32(2*i+1), question("hello", i%2 == 1)); err != nil {
			t.Fatal(err)
		}
	}
	if !await(func() bool { answers, ended, _ := f.state(); return answers == 100 && ended == 100 }) {
		answers, ended, _ := f.state()
		t.Errorf("of 100 streams %d have an answer, %d an end", answers, ended)
	}
	for id, status := range f.answers {
		if status != "200" {
			t.Errorf("stream %d got %s", id, status)
		}
	}
	f.conn.Close()
	f = w.frames(t)
	for i := range 300 {
		if err := f.ask(uint32(2*i+1), question("play:silent;", false)); err != nil {
			break
		}
	}
	gone := func() bool {
		_, ended, _ := f.state()
		return f.over() || ended >= 200
	}
	if !await(gone) {
		_, ended, _ := f.state()
		t.Errorf("of 300 streams at once, %d are refused", ended)
	}
	f.conn.Close()
}

// closedWindow: a client asks for large answers and takes not a byte of them.
func (w *world) closedWindow(t *testing.T) {
	text := strings.Repeat("a", 8<<20)
	answer := `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"` + text + `"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
	w.up.play("large", func(conn net.Conn) {
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s", len(answer), answer)
	})
	f := w.frames(t, settingInitialWindow, 0)
	const streams = 20
	for i := range uint32(streams) {
		if err := f.ask(2*i+1, question("play:large;", false)); err != nil {
			t.Fatal(err)
		}
	}
	if !await(func() bool { answers, _, _ := f.state(); return answers == streams }) {
		answers, _, _ := f.state()
		t.Errorf("%d of %d answers have come", answers, streams)
	}
	if _, _, data := f.state(); data > 0 {
		t.Errorf("%d bytes come through a closed window", data)
	}
	f.conn.Close()
}

// floods are frames without use, many thousand of each kind. The connection may be closed
// for it; if it is not, a question on it is answered.
func (w *world) floods(t *testing.T) {
	type flood func(f *frames) error
	repeat := func(n int, write func(f *frames, i int) error) flood {
		return func(f *frames) error {
			for i := range n {
				if err := write(f, i); err != nil {
					return err
				}
			}
			return nil
		}
	}
	// behind is a flood on a stream that has begun.
	behind := func(flags byte, next flood) flood {
		return func(f *frames) error {
			return errors.Join(f.write(frameHeaders, flags, 1, f.block(usual()...)), next(f))
		}
	}
	var all sync.WaitGroup
	for name, flood := range map[string]flood{
		"PING":     repeat(50_000, func(f *frames, _ int) error { return f.write(framePing, 0, 0, make([]byte, 8)) }),
		"PING ack": repeat(50_000, func(f *frames, _ int) error { return f.write(framePing, flagAck, 0, make([]byte, 8)) }),
		"SETTINGS": repeat(20_000, func(f *frames, i int) error { return f.settings(settingInitialWindow, uint32(65_535+i)) }),
		"SETTINGS of many": repeat(200, func(f *frames, _ int) error {
			return f.settings(slices.Repeat([]uint32{settingInitialWindow, 65_535}, 1000)...)
		}),
		"PRIORITY": repeat(50_000, func(f *frames, i int) error {
			return f.write(framePriority, 0, uint32(2*i+1), binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0}, uint32(i))[3:])
		}),
		"WINDOW_UPDATE":     repeat(50_000, func(f *frames, _ int) error { return f.windowUpdate(0, 1) }),
		"RST of no stream":  repeat(20_000, func(f *frames, i int) error { return f.reset(uint32(2*i + 1)) }),
		"frames of no kind": repeat(50_000, func(f *frames, _ int) error { return f.write(0x50, 0, 0, []byte("x")) }),
		"empty DATA":        behind(flagEndHeaders, repeat(50_000, func(f *frames, _ int) error { return f.write(frameData, 0, 1, nil) })),
		"DATA of padding":   behind(flagEndHeaders, repeat(20_000, func(f *frames, _ int) error { return f.write(frameData, flagPadded, 1, []byte{4, 0, 0, 0, 0}) })),
		"CONTINUATION": behind(0, repeat(20_000, func(f *frames, i int) error {
			return f.write(frameContinuation, 0, 1, f.block(fmt.Sprint("x", i), "y"))
		})),
		"empty CONTINUATION": behind(0, repeat(20_000, func(f *frames, _ int) error { return f.write(frameContinuation, 0, 1, nil) })),
		"HPACK bomb": func(f *frames) error {
			// A long field goes into the table once, and is named a thousand times.
			return f.begin(1, true, usual(slices.Repeat([]string{"x", strings.Repeat("y", 3000)}, 1000)...)...)
		},
		"HPACK index": func(f *frames) error {
			return f.write(frameHeaders, flagEndHeaders, 1, bytes.Repeat([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, 1000))
		},
		"trailers": func(f *frames) error {
			return errors.Join(f.begin(1, false, usual()...), f.write(frameData, 0, 1, []byte(question("hello", false))),
				f.begin(1, true, "x-y", "z", "authorization", "Bearer other"))
		},
	} {
		f := w.frames(t)
		all.Go(func() {
			defer f.conn.Close()
			err := flood(f)
			if err == nil {
				err = f.ask(100_001, question("hello", false))
			}
			if !await(func() bool { return f.over() || f.status(100_001) == "200" }) {
				t.Errorf("%s: the connection neither answers nor ends (%v)", name, err)
			}
		})
	}
	all.Wait()
}

// oddRequests break the rules for a request; none of them goes up as it is.
func (w *world) oddRequests(t *testing.T) {
	body := []byte(question("hello", false))
	one := func(fields []string, more ...func(f *frames) error) func(f *frames) error {
		return func(f *frames) error {
			err := f.begin(1, len(more) == 0, fields...)
			for _, next := range more {
				err = errors.Join(err, next(f))
			}
			return err
		}
	}
	send := func(f *frames) error { return f.write(frameData, flagEndStream, 1, body) }
	nothing := func(*frames) error { return nil }
	var all sync.WaitGroup
	for name, ask := range map[string]func(f *frames) error{
		"a length that is too small": one(usual("content-length", "5"), send),
		"a length that is too large": one(usual("content-length", "99999"), send),
		"two lengths":                one(usual("content-length", fmt.Sprint(len(body)), "content-length", "5"), send),
		"upper case":                 one(usual("X-Upper", "y")),
		"connection":                 one(usual("connection", "x-y", "x-y", "z")),
		"transfer-encoding":          one(usual("transfer-encoding", "chunked")),
		"two paths":                  one(usual(":path", "/v1/smuggled")),
		"a pseudo header behind":     one(usual("x", "y", ":path", "/v1/smuggled")),
		"an unknown one":             one(usual(":x", "y")),
		"no path":                    one(usual()[:6]),
		"an empty path":              one(append(usual()[:6], ":path", "")),
		"a path with a line":         one(append(usual()[:6], ":path", "/openai/v1/x HTTP/1.1\r\nx: y")),
		"a value with a line":        one(usual("x", "y\r\nz: a")),
		"a value with NUL":           one(usual("x", "y\x00")),
		"an even stream":             func(f *frames) error { return f.begin(2, true, usual()...) },
		"stream 0":                   func(f *frames) error { return f.begin(0, true, usual()...) },
		"a stream of the past":       func(f *frames) error { return errors.Join(f.ask(5, string(body)), f.ask(3, string(body))) },
		"DATA before headers":        send,
		"a window over the limit": one(usual(), send, func(f *frames) error {
			return errors.Join(f.windowUpdate(1, 1<<31-1), f.windowUpdate(1, 1<<31-1))
		}),
		"a frame over the limit": one(usual(), func(f *frames) error { return f.write(frameData, 0, 1, make([]byte, 1<<20)) }),
		"a push":                 func(f *frames) error { return f.write(framePush, flagEndHeaders, 1, []byte{0, 0, 0, 2}) },
		"CONNECT":                one([]string{":method", "CONNECT", ":authority", "127.0.0.1:9901", "authorization", "Bearer " + clientKey}, nothing),
		"extended CONNECT":       one(usual(":protocol", "websocket"), nothing),
	} {
		f := w.frames(t)
		all.Go(func() {
			defer f.conn.Close()
			err := errors.Join(ask(f), f.out.Flush())
			done := func() bool {
				answers, ended, _ := f.state()
				return f.over() || answers+ended > 0
			}
			if !await(done) {
				t.Errorf("%s: the connection neither answers nor ends (%v)", name, err)
			}
		})
	}
	all.Wait()
}

// interleavedUploads: large bodies on one connection, all under way at once, each with its
// own answer.
func (w *world) interleavedUploads(t *testing.T) {
	c := newClient(t, true)
	if err := w.ask(t.Context(), c, false); err != nil { // so that all share its connection
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		mark := w.mark()
		padding := `{"role":"system","content":"` + strings.Repeat(string(rune('a'+i)), 3<<20) + `"},`
		body := strings.Replace(question("Repeat after me: "+mark, false), `"messages":[`, `"messages":[`+padding, 1)
		all.Go(func() {
			r, err := w.post(t.Context(), c, body)
			if err == nil && r.Status != http.StatusOK {
				err = fmt.Errorf("%d %.300q", r.Status, r.Body)
			}
			if err == nil {
				err = r.wantText(mark, false)
			}
			if err != nil {
				t.Errorf("upload %d: %v", i, err)
			}
		})
	}
	all.Wait()
}
