package egress_test

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer is a DNS server on loopback whose answers a test decides, question by
// question. A name that no test has given it does not exist.
type nameServer struct {
	conn net.PacketConn

	mu    sync.Mutex
	names map[string]answerer
	asked map[string]int // questions for IPv4 addresses by name, in lower case
}

// answerer gives the answer to the nth question for addresses of a family, counted
// from 0 for each family.
type answerer func(n int, ipv6 bool) answer

// answer is a DNS answer. The zero value says that the name has no address.
type answer struct {
	addresses []string
	ttl       uint32
	rcode     dnsmessage.RCode
	silent    bool
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{conn: conn, names: map[string]answerer{}, asked: map[string]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.serve(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the name server ends: %v", err)
		}
	}()
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return s
}

func (s *nameServer) port() int { return s.conn.LocalAddr().(*net.UDPAddr).Port }

// give sets what a name has: the same addresses for every question.
func (s *nameServer) give(name string, addresses ...string) {
	s.script(name, func(int, bool) answer { return answer{addresses: addresses, ttl: 300} })
}

func (s *nameServer) script(name string, a answerer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = a
}

// scriptOnce sets what a name has, unless it has something already.
func (s *nameServer) scriptOnce(name string, a answerer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[name] == nil {
		s.names[name] = a
	}
}

// questions is how often a name was asked for.
func (s *nameServer) questions(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

func (s *nameServer) serve() error {
	packet := make([]byte, 4096)
	seen := map[string]int{} // by name and family
	for {
		n, from, err := s.conn.ReadFrom(packet)
		if err != nil {
			return err
		}
		reply, err := s.reply(packet[:n], seen)
		if err != nil {
			return err
		}
		if reply == nil {
			continue
		}
		if _, err := s.conn.WriteTo(reply, from); err != nil {
			return err
		}
	}
}

// reply is nil for a question that gets none.
func (s *nameServer) reply(packet []byte, seen map[string]int) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(packet)
	if err != nil {
		return nil, err
	}
	question, err := parser.Question()
	if err != nil {
		return nil, err
	}
	a := s.look(question, seen)
	if a.silent {
		return nil, nil
	}
	builder := dnsmessage.NewBuilder(nil, dnsmessage.Header{
		ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true, RCode: a.rcode,
	})
	builder.EnableCompression()
	if err := errors.Join(builder.StartQuestions(), builder.Question(question), builder.StartAnswers()); err != nil {
		return nil, err
	}
	for _, text := range a.addresses {
		if err := addRecord(&builder, question, text, a.ttl); err != nil {
			return nil, err
		}
	}
	return builder.Finish()
}

// look counts the question and finds the answer to it.
func (s *nameServer) look(q dnsmessage.Question, seen map[string]int) answer {
	name := strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")
	ipv6 := q.Type == dnsmessage.TypeAAAA
	s.mu.Lock()
	a := s.names[name]
	if !ipv6 {
		s.asked[name]++
	}
	s.mu.Unlock()
	if a == nil {
		return answer{rcode: dnsmessage.RCodeNameError}
	}
	if q.Type != dnsmessage.TypeA && !ipv6 {
		return answer{}
	}
	key := q.Type.String() + name
	seen[key]++
	return a(seen[key]-1, ipv6)
}

// addRecord adds an address, if the question is for its family.
func addRecord(b *dnsmessage.Builder, q dnsmessage.Question, text string, ttl uint32) error {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return err
	}
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: ttl}
	switch {
	case ip.Is4() && q.Type == dnsmessage.TypeA:
		return b.AResource(header, dnsmessage.AResource{A: ip.As4()})
	case ip.Is6() && q.Type == dnsmessage.TypeAAAA:
		return b.AAAAResource(header, dnsmessage.AAAAResource{AAAA: ip.As16()})
	}
	return nil
}
