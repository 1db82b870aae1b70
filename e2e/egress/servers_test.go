package egress_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Addresses on loopback and what they play. 127.0.0.0/24 is private in these tests,
// the rest of 127.0.0.0/8 is public.
const (
	publicIP  = "127.0.1.1" // serves images
	public2IP = "127.0.1.5" // the same, with a certificate for its address
	deadIP    = "127.0.1.2" // refuses connections
	muteIP    = "127.0.1.3" // never answers
	privateIP = "127.0.0.2" // must not be connected to, and would serve images
	localIP   = "127.0.0.1" // the same
	private6  = "::1"       // the same
)

// site is all the servers of a test. Each address listens on the same two ports, so
// that one URL can lead to any of them.
type site struct {
	plainPort, tlsPort string
	private            []*door

	mu    sync.Mutex
	pages map[string]http.HandlerFunc // by the path's first segment
	seen  map[string][]*http.Request  // likewise
	certs map[string]*tls.Certificate // by server name; "" is for none
	ca    *authority
}

// door is a listener that counts those who come in.
type door struct {
	net.Listener
	accepted atomic.Int64
}

func (d *door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err == nil {
		d.accepted.Add(1)
	}
	return conn, err
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{pages: map[string]http.HandlerFunc{}, seen: map[string][]*http.Request{}, certs: map[string]*tls.Certificate{}, ca: newAuthority(t)}
	public, private := []string{publicIP, public2IP}, []string{localIP, privateIP}
	if v6, err := net.Listen("tcp6", "["+private6+"]:0"); err == nil {
		private = append(private, private6)
		v6.Close()
	}
	config := &tls.Config{GetCertificate: s.certificate, NextProtos: []string{"http/1.1"}}
	for _, secure := range []bool{false, true} {
		doors, port := openDoors(t, append(append([]string{}, public...), private...))
		mute(t, net.JoinHostPort(muteIP, port))
		for i, d := range doors {
			handler := http.HandlerFunc(s.serve)
			if i >= len(public) {
				s.private = append(s.private, d)
				handler = func(w http.ResponseWriter, r *http.Request) { w.Write(png) }
			}
			listener := net.Listener(d)
			if secure {
				listener = tls.NewListener(d, config)
			}
			serve(t, listener, handler)
		}
		if secure {
			s.tlsPort = port
		} else {
			s.plainPort = port
		}
	}
	return s
}

// openDoors listens on one port of several addresses.
func openDoors(t *testing.T, ips []string) ([]*door, string) {
	t.Helper()
	const tries = 20
	for range tries {
		port := "0"
		var doors []*door
		for _, ip := range ips {
			l, err := net.Listen("tcp", net.JoinHostPort(ip, port))
			if errors.Is(err, syscall.EADDRINUSE) {
				break // somebody else has this port on another address
			}
			if err != nil {
				t.Fatal(err)
			}
			doors = append(doors, &door{Listener: l})
			port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		}
		if len(doors) == len(ips) {
			return doors, port
		}
		for _, d := range doors {
			d.Close()
		}
	}
	t.Fatalf("no port is free on all of %v", ips)
	return nil, ""
}

func serve(t *testing.T, l net.Listener, handler http.Handler) {
	t.Helper()
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server at %v ends: %v", l.Addr(), err)
		}
	}()
	t.Cleanup(func() {
		if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		<-done
	})
}

// mute opens a port that lets nobody in: its queue is full, and nobody empties it.
func mute(t *testing.T, address string) {
	t.Helper()
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		conn, err := net.DialTimeout("tcp4", address, 300*time.Millisecond)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatalf("%s still lets connections in", address)
}

// page sets what is served below /name.
func (s *site) page(name string, handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[name] = handler
}

// file serves a file below /name.
func (s *site) file(name, contentType string, data []byte) {
	s.page(name, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", contentType)
		w.Header().Set("content-length", strconv.Itoa(len(data)))
		w.Write(data)
	})
}

// raw lets a test write the answer byte by byte: the connection is the test's, and
// is closed behind it.
func (s *site) raw(name string, answer func(conn net.Conn)) {
	s.page(name, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err) // HTTP/1.1 can always be taken over
		}
		defer conn.Close()
		answer(conn)
	})
}

// requests are those for what is below /name.
func (s *site) requests(name string) []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request{}, s.seen[name]...)
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	page := s.pages[name]
	s.seen[name] = append(s.seen[name], r)
	s.mu.Unlock()
	if page == nil {
		http.NotFound(w, r)
		return
	}
	page(w, r)
}

// wantUntouched fails the test when anybody has connected to a private address. It
// knocks at each door itself, so that all who came before have been counted.
func (s *site) wantUntouched(t *testing.T) {
	t.Helper()
	for _, d := range s.private {
		before := d.accepted.Load()
		conn, err := net.Dial("tcp", d.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		for end := time.Now().Add(patience); d.accepted.Load() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%v does not count", d.Addr())
			}
		}
		if n := d.accepted.Add(-1); n != 0 {
			t.Errorf("%v is private, and %d connections came", d.Addr(), n)
		}
	}
}

// authority is a certificate authority of the test's own.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	path string // its certificate in PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := template("test authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	made, err := sign(template, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{cert: made.Leaf, key: made.PrivateKey.(*ecdsa.PrivateKey), path: filepath.Join(t.TempDir(), "ca.pem")}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	if err := os.WriteFile(a.path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// sign makes a certificate and its key, by an authority or by itself.
func sign(template *x509.Certificate, by *authority) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	parent, parentKey := template, key
	if by != nil {
		parent, parentKey = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

// show sets the certificate that is shown to who asks for a server name.
func (s *site) show(t *testing.T, serverName string, cert *x509.Certificate, by *authority) {
	t.Helper()
	made, err := sign(cert, by)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certs[serverName] = made
}

// certificate makes the certificate for a name when it is first asked for. Without a
// name it is for the address, if that is public2IP, and otherwise for some host.
func (s *site) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := hello.ServerName
	own := hello.Conn.LocalAddr().(*net.TCPAddr).IP
	if key == "" {
		key = own.String()
	}
	if made := s.certs[key]; made != nil {
		return made, nil
	}
	cert := template(key)
	switch {
	case hello.ServerName != "":
		cert.DNSNames = []string{hello.ServerName}
	case own.String() == public2IP:
		cert.IPAddresses = []net.IP{own}
	default:
		cert.DNSNames = []string{"some-host.test"}
	}
	made, err := sign(cert, s.ca)
	s.certs[key] = made
	return made, err
}
