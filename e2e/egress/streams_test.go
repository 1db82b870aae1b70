package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"ezat.io/chat-completions/e2e/standin"
)

// leave asks for images and goes away as soon as arrived is closed.
func (w *world) leave(t *testing.T, arrived <-chan struct{}, urls ...string) (outcome, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		select {
		case <-arrived:
		case <-ctx.Done():
		}
		cancel()
	}()
	return w.ask(ctx, urls...)
}

// stream is a streamed chat of which the test has both ends in its hands.
type stream struct {
	words []string        // that the model has still to say
	gates []chan struct{} // one for each of them, and one for the end
	lines *bufio.Reader
}

// Pieces of a stream from the upstream.
const (
	streamBegin = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\"," +
		"\"model\":\"claude-sonnet-5-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	streamWord = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n"
	streamEnd  = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":2}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

// openStream begins a streamed chat in which the model says these words, each of them
// when it is told to.
func (w *world) openStream(t *testing.T, words ...string) *stream {
	t.Helper()
	s := &stream{words: words}
	reply := standin.SSE([]byte(streamBegin))
	for _, word := range words {
		s.add(reply, fmt.Sprintf(streamWord, word))
	}
	s.add(reply, streamEnd)
	mark := w.newMark()
	w.answerWith(mark, reply)
	body := fmt.Sprintf(`{"model":"anthropic/claude-sonnet-5-5","stream":true,"messages":[{"role":"user","content":%q}]}`, mark)
	response, err := w.send(t.Context(), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the stream begins with %s", response.Status)
	}
	s.lines = bufio.NewReader(response.Body)
	return s
}

// add puts a gate before the next piece of the stream.
func (s *stream) add(reply *standin.Response, data string) {
	gate := make(chan struct{})
	s.gates = append(s.gates, gate)
	reply.Pieces = append(reply.Pieces, standin.Piece{Wait: gate, Data: []byte(data)})
}

// next lets the model say the next word, and waits until the client has it.
func (s *stream) next(t *testing.T) {
	t.Helper()
	word := s.words[0]
	s.words = s.words[1:]
	s.open()
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("waiting for %q: %v", word, err)
		}
		if strings.Contains(line, fmt.Sprintf("%q", word)) {
			return
		}
	}
}

// end lets the model end, and reads the rest.
func (s *stream) end(t *testing.T) {
	t.Helper()
	s.open()
	rest, err := io.ReadAll(s.lines)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
}

func (s *stream) open() {
	close(s.gates[0])
	s.gates = s.gates[1:]
}
