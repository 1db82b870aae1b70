package hostile_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// testSmuggling sends requests whose end two programs could see in two places. Envoy has to
// refuse them, or to see one end; what stands in the body must never go up as a request: it
// asks for a path that no translation has, and attack looks for those. Nor may it spoil the
// answer of the next client on the same upstream connection.
func (w *world) testSmuggling(t *testing.T) {
	const inner = "POST /v1/smuggled HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"
	body := question("hello", false)
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	n := len(body)
	var all sync.WaitGroup
	turns := make(chan struct{}, 6)
	try := func(sent string) {
		conn := w.dial(t)
		turns <- struct{}{}
		all.Go(func() {
			w.smuggle(t, conn, sent)
			<-turns
		})
	}
	for _, shape := range []struct{ fields, body string }{
		{fmt.Sprintf("content-length: %d\r\ntransfer-encoding: chunked", n), chunked},
		{fmt.Sprintf("transfer-encoding: chunked\r\ncontent-length: %d", len(chunked)+len(inner)), chunked + inner},
		{"content-length: 0\r\ntransfer-encoding: chunked", chunked + inner},
		{fmt.Sprintf("content-length: %d\r\ncontent-length: %d", n, n), body},
		{fmt.Sprintf("content-length: %d\r\ncontent-length: %d", n, n+len(inner)), body + inner},
		{fmt.Sprintf("content-length: %d\r\ncontent-length: 0", n), body + inner},
		{fmt.Sprintf("content-length: %d, %d", n, n), body},
		{fmt.Sprintf("content-length: %d, 0", n), body + inner},
		{fmt.Sprintf("content-length: +%d", n), body + inner},
		{fmt.Sprintf("content-length: -%d", n), body + inner},
		{fmt.Sprintf("content-length: 0x%x", n), body + inner},
		{fmt.Sprintf("content-length: %d ", n), body + inner},
		{fmt.Sprintf("content-length:\t%d", n), body + inner},
		{fmt.Sprintf("content-length: 0%d", n), body + inner},
		{fmt.Sprintf("content-length: %d.0", n), body + inner},
		{fmt.Sprintf("content-length: %de0", n), body + inner},
		{fmt.Sprintf("content-length : %d", n), body + inner},
		{fmt.Sprintf(" content-length: %d", n), body + inner},
		{fmt.Sprintf("x: y\r\n content-length: %d", n), body + inner},
		{fmt.Sprintf("x: y\n content-length: %d", n), body + inner},
		{fmt.Sprintf("x: y\rcontent-length: %d", n), body + inner},
		{fmt.Sprintf("content_length: %d", n), body + inner},
		{fmt.Sprintf("content-length: %d\r\ncontent_length: 0", n), body + inner},
		{"content-length: 99999999999999999999", body + inner},
		{"content-length: 18446744073709551616", body + inner},
		{"content-length:", body + inner},
		{"content-length: \x00", body + inner},
		{"transfer-encoding: xchunked", chunked + inner},
		{"transfer-encoding: chunked, identity", chunked + inner},
		{"transfer-encoding: identity, chunked", chunked + inner},
		{"transfer-encoding: chunked, chunked", chunked + inner},
		{"transfer-encoding: gzip, chunked", chunked + inner},
		{"transfer-encoding: chunked\r\ntransfer-encoding: identity", chunked + inner},
		{"transfer-encoding: identity\r\ntransfer-encoding: chunked", chunked + inner},
		{"transfer-encoding: \"chunked\"", chunked + inner},
		{"transfer-encoding: chunked;q=1", chunked + inner},
		{"transfer-encoding:\vchunked", chunked + inner},
		{"transfer-encoding:chunked", chunked + inner},
		{"transfer-encoding : chunked", chunked + inner},
		{"transfer-encoding\x00: chunked", chunked + inner},
		{"Transfer-Encoding: CHUNKED", chunked + inner},
		{"transfer-encoding: chunked\r\n\tx", chunked + inner},
		{"transfer_encoding: chunked", chunked + inner},
		{"transfer-encoding: chunked", strings.Replace(chunked, "\r\n", "\n", 1) + inner},
		{"transfer-encoding: chunked", strings.Replace(chunked, "\r\n", ";x=\"\r\n", 1) + inner},
		{"transfer-encoding: chunked", strings.Replace(chunked, "\r\n", ";"+strings.Repeat("x", 1<<16)+"\r\n", 1) + inner},
		{"transfer-encoding: chunked", strings.Replace(chunked, "\r\n", " \r\n", 1) + inner},
		{"transfer-encoding: chunked", "0x" + chunked + inner},
		{"transfer-encoding: chunked", "-" + chunked + inner},
		{"transfer-encoding: chunked", "+" + chunked + inner},
		{"transfer-encoding: chunked", "0000000000000000000000000" + chunked + inner},
		{"transfer-encoding: chunked", "ffffffffffffffffff\r\n" + body + inner},
		{"transfer-encoding: chunked", "fffffffffffffffe\r\n" + body + inner},
		{"transfer-encoding: chunked", strings.Replace(chunked, "\r\n0\r\n", "0\r\n", 1) + inner},
		{"transfer-encoding: chunked", strings.Replace(chunked, "\r\n0\r\n", "xx0\r\n", 1) + inner},
		{"transfer-encoding: chunked", strings.TrimSuffix(chunked, "\r\n") + "x: y\r\ncontent-length: 5\r\n\r\n" + inner},
		{"transfer-encoding: chunked", strings.TrimSuffix(chunked, "\r\n") + "authorization: Bearer other\r\n:path: /v1/smuggled\r\n\r\n" + inner},
		{fmt.Sprintf("upgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABk\r\ncontent-length: %d", n), body + inner},
		{fmt.Sprintf("connection: content-length\r\ncontent-length: %d", n), body + inner},
		{fmt.Sprintf("connection: authorization, x-api-key\r\ncontent-length: %d", n), body + inner},
		{fmt.Sprintf("expect: 100-continue\r\ncontent-length: %d", n), body + inner},
	} {
		try(head() + shape.fields + "\r\n\r\n" + shape.body)
	}
	for _, line := range []string{
		"POST /openai/v1/chat/completions HTTP/0.9", "POST /openai/v1/chat/completions HTTP/1.1 x", "POST  /openai/v1/chat/completions HTTP/1.1",
		"POST http://other/openai/v1/chat/completions HTTP/1.1", "POST /openai/v1/chat/completions\tHTTP/1.1", "GET /openai/v1/chat/completions HTTP/1.1",
		"POST /openai/v1/../../v1/smuggled HTTP/1.1", "POST /openai/v1/..%2f..%2fv1/smuggled HTTP/1.1", "POST /openai/v1/%2e%2e/%2e%2e/v1/smuggled HTTP/1.1",
		"POST /openai/v1/chat/completions?x=/v1/smuggled HTTP/1.1", "POST /openai/v1/chat/completions#/v1/smuggled HTTP/1.1", "CONNECT /v1/smuggled HTTP/1.1",
		"TRACE /openai/v1/chat/completions HTTP/1.1", "PRI * HTTP/2.0",
	} {
		try(line + raw(body)[strings.Index(raw(body), "\r\n"):])
	}
	all.Wait()
}

// smuggle sends one request and reads what comes, until nothing more does. Its answers
// must be answers, and the next client's must be his own.
func (w *world) smuggle(t *testing.T, conn net.Conn, sent string) {
	if _, err := io.WriteString(conn, sent); err != nil && !isReset(err) {
		t.Errorf("%.150q: %v", sent, err)
	}
	r := bufio.NewReader(conn)
	for n := 0; n < 4; n++ {
		// What is not answered by now waits for more of the request.
		if err := conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			t.Error(err)
		}
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			break
		}
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode >= 500 && response.StatusCode != 501 {
			t.Errorf("%.150q\nanswer %d: %d %.200q %v", sent, n, response.StatusCode, text, err)
		}
		if n > 2 {
			t.Errorf("%.150q\nmore answers than there can be requests", sent)
		}
	}
	conn.Close()
	if err := w.ask(t.Context(), w.client, false); err != nil {
		t.Errorf("behind %.150q: %v", sent, err)
	}
}
