package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// The client and the stand-in speak HTTP/1.1 by hand: what they take must be
// little beside what Envoy takes, and the same in each exchange.

// messages reads HTTP/1.1 messages from a connection one after the other.
type messages struct {
	conn net.Conn
	buf  []byte
	r, w int // what of buf has been read, and how far it is filled
}

const readBytes = 256 << 10

func newMessages(conn net.Conn) *messages {
	return &messages{conn: conn, buf: make([]byte, readBytes)}
}

// message is what was read of one.
type message struct {
	line  string    // the first line
	first time.Time // when the first byte of the body was there
	bytes int       // of the body, without its framing
	body  []byte    // the body, if it was to be kept
}

// next reads a message to its end.
func (m *messages) next(keep bool) (message, error) {
	head, err := m.head()
	if err != nil {
		return message{}, err
	}
	line, fields, _ := bytes.Cut(head, []byte("\r\n"))
	msg := message{line: string(line)}
	if field(fields, "transfer-encoding") == "chunked" {
		return msg, m.chunks(&msg, keep)
	}
	if text := field(fields, "content-length"); text != "" {
		size, err := strconv.Atoi(text)
		if err != nil {
			return msg, err
		}
		return msg, m.bytes(&msg, size, keep)
	}
	return msg, nil
}

// head reads up to the blank line behind the headers.
func (m *messages) head() ([]byte, error) {
	for {
		if i := bytes.Index(m.buf[m.r:m.w], []byte("\r\n\r\n")); i >= 0 {
			head := m.buf[m.r : m.r+i]
			m.r += i + 4
			return head, nil
		}
		if err := m.fill(); err != nil {
			return nil, err
		}
	}
}

// field is the value of a header in lower case; the names that are asked for
// are sent as Envoy and this package spell them.
func field(fields []byte, name string) string {
	for line := range bytes.SplitSeq(fields, []byte("\r\n")) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		if len(key) == len(name) && string(bytes.ToLower(key)) == name {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// fill reads more behind what is there.
func (m *messages) fill() error {
	if m.r == m.w {
		m.r, m.w = 0, 0
	}
	if m.w == len(m.buf) {
		if m.r == 0 {
			return errors.New("a header or chunk size is too long")
		}
		m.w = copy(m.buf, m.buf[m.r:m.w])
		m.r = 0
	}
	n, err := m.conn.Read(m.buf[m.w:])
	m.w += n
	if n > 0 {
		return nil
	}
	return err
}

// bytes reads size bytes of a body.
func (m *messages) bytes(msg *message, size int, keep bool) error {
	for size > 0 {
		if m.r == m.w {
			if err := m.fill(); err != nil {
				return err
			}
		}
		if msg.first.IsZero() {
			msg.first = time.Now()
		}
		n := min(size, m.w-m.r)
		if keep {
			msg.body = append(msg.body, m.buf[m.r:m.r+n]...)
		}
		msg.bytes += n
		m.r += n
		size -= n
	}
	return nil
}

// chunks reads a chunked body. Trailers are not expected.
func (m *messages) chunks(msg *message, keep bool) error {
	for {
		text, err := m.until("\r\n")
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(string(text), 16, 32)
		if err != nil {
			return err
		}
		if err := m.bytes(msg, int(size), keep); err != nil {
			return err
		}
		if text, err = m.until("\r\n"); err != nil {
			return err
		}
		if len(text) > 0 {
			return fmt.Errorf("%q behind a chunk", text)
		}
		if size == 0 {
			return nil
		}
	}
}

// until reads up to and with a mark.
func (m *messages) until(mark string) ([]byte, error) {
	for {
		if i := bytes.Index(m.buf[m.r:m.w], []byte(mark)); i >= 0 {
			text := m.buf[m.r : m.r+i]
			m.r += i + len(mark)
			return text, nil
		}
		if err := m.fill(); err != nil {
			return nil, err
		}
	}
}

// client is one connection to a proxy.
type client struct {
	conn  net.Conn
	in    *messages
	least int // an answer of fewer bytes is a fault
}

func dial(address string) (*client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: newMessages(conn)}, nil
}

func (c *client) close() { c.conn.Close() }

// exchange is how long one exchange took: to the first byte of the answer's
// body, and to its end.
type exchange struct{ first, whole time.Duration }

// ask sends a request, as post has made it, and reads the answer.
func (c *client) ask(request []byte) (exchange, error) {
	begin := time.Now()
	msg, err := c.send(request, false)
	if err != nil {
		return exchange{}, err
	}
	if msg.bytes < c.least {
		return exchange{}, fmt.Errorf("an answer has %d bytes where the others have %d", msg.bytes, c.least)
	}
	return exchange{msg.first.Sub(begin), time.Since(begin)}, nil
}

func (c *client) send(request []byte, keep bool) (message, error) {
	if err := c.conn.SetDeadline(time.Now().Add(exchangeLimit)); err != nil {
		return message{}, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return message{}, err
	}
	msg, err := c.in.next(keep)
	if err != nil {
		return msg, err
	}
	if len(msg.line) < 12 || msg.line[9:12] != "200" {
		return msg, fmt.Errorf("the answer is %q %s", msg.line, msg.body)
	}
	return msg, nil
}

// exchangeLimit bounds one exchange.
const exchangeLimit = 2 * time.Minute

// post spells a chat request with its body, and further headers as "name: value".
func post(body []byte, headers ...string) []byte {
	var b bytes.Buffer
	b.Grow(len(body) + 512)
	b.WriteString("POST /openai/v1/chat/completions HTTP/1.1\r\nhost: gateway.test\r\nauthorization: Bearer sk-bench\r\n" +
		"content-type: application/json\r\nuser-agent: bench\r\naccept: application/json\r\n")
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	fmt.Fprintf(&b, "content-length: %d\r\n\r\n", len(body))
	b.Write(body)
	return b.Bytes()
}
