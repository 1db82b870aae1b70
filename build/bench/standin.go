package main

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// standIn is an upstream that answers every request with the same bytes, as
// fast as it can.
type standIn struct {
	listener net.Listener
	reply    atomic.Pointer[reply]
	failed   atomic.Pointer[error]
}

// reply is an answer as it is written: pieces, and how long to wait behind each.
type reply struct {
	pieces [][]byte
	pause  time.Duration
}

func newStandIn() (*standIn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &standIn{listener: l}
	go s.accept()
	return s, nil
}

func (s *standIn) address() string { return s.listener.Addr().String() }

func (s *standIn) close() error { return s.listener.Close() }

func (s *standIn) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		go s.serve(conn)
	}
}

// serve answers one connection until the peer closes it.
func (s *standIn) serve(conn net.Conn) {
	defer conn.Close()
	in := newMessages(conn)
	for {
		if _, err := in.next(false); err != nil {
			return
		}
		r := s.reply.Load()
		for i, piece := range r.pieces {
			if i > 0 && r.pause > 0 {
				time.Sleep(r.pause)
			}
			if _, err := conn.Write(piece); err != nil && !errors.Is(err, net.ErrClosed) {
				s.failed.Store(&err)
				return
			}
		}
	}
}

// err is what went wrong with an answer, if anything did.
func (s *standIn) err() error {
	if p := s.failed.Load(); p != nil {
		return fmt.Errorf("the stand-in could not answer: %w", *p)
	}
	return nil
}

// whole is a reply of JSON with a length.
func whole(body []byte) *reply {
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nrequest-id: req_011\r\ncontent-length: %d\r\n\r\n", len(body))
	return &reply{pieces: [][]byte{append([]byte(head), body...)}}
}

const streamHead = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_011\r\ntransfer-encoding: chunked\r\n\r\n"

// chunk is one chunk of a chunked body; an empty one ends it.
func chunk(data []byte) []byte {
	b := fmt.Appendf(nil, "%x\r\n", len(data))
	return append(append(b, data...), "\r\n"...)
}
