package envoy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
)

// authority is a certificate authority of a test's own.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	path string // its certificate in PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := certificate("test authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	var der []byte
	der, a.key = sign(t, template, nil)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.path = writePEM(t, "ca.pem", "CERTIFICATE", der)
	return a
}

// issue makes a certificate for a host name, and returns the paths of it and of its key.
func (a *authority) issue(t *testing.T, host string) (cert, key string) {
	t.Helper()
	template := certificate(host)
	template.DNSNames = []string{host}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, private := sign(t, template, a)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, "cert.pem", "CERTIFICATE", der), writePEM(t, "key.pem", "PRIVATE KEY", encoded)
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

// sign makes a key and a certificate for it, by an authority or by itself.
func sign(t *testing.T, template *x509.Certificate, by *authority) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, parentKey := template, key
	if by != nil {
		parent, parentKey = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

func writePEM(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUpstreamMustProveItsName: the file's TLS settings, with another
// authority than the system's.
func TestUpstreamMustProveItsName(t *testing.T) {
	trusted, stranger := newAuthority(t), newAuthority(t)
	var shown atomic.Pointer[tls.Certificate]
	var asked atomic.Pointer[string]
	up := standin.New(standin.Options{})
	server := httptest.NewUnstartedServer(up)
	server.Config.ErrorLog = quiet
	server.TLS = &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		asked.Store(&hello.ServerName)
		return shown.Load(), nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(up.Close)
	e := envoy.New(t, envoy.Options{Upstreams: []string{server.URL}, UpstreamCA: trusted.path})
	for _, test := range []struct {
		name   string
		signer *authority
		host   string
		fine   bool
	}{
		{"another name", trusted, "api.example.test", false},
		{"the right name, a stranger's authority", stranger, "api.anthropic.com", false},
		{"the right name", trusted, "api.anthropic.com", true}, // the last one, because its connection is kept
	} {
		t.Run(test.name, func(t *testing.T) {
			cert, err := tls.LoadX509KeyPair(test.signer.issue(t, test.host))
			if err != nil {
				t.Fatal(err)
			}
			shown.Store(&cert)
			asked.Store(nil)
			r := chat(t, client(t, false), e, hello)
			if name := asked.Load(); name == nil || *name != "api.anthropic.com" {
				t.Errorf("asked for the name %v", name)
			}
			if test.fine {
				wantAnswer(t, r)
				return
			}
			wantError(t, r, 503, "server_error")
			if strings.Contains(r.Body, test.host) {
				t.Errorf("the client is told of the certificate: %s", r.Body)
			}
			if sent := up.Requests(); len(sent) != 0 {
				t.Errorf("the upstream got %d requests", len(sent))
			}
		})
	}
}

// serve gives the example of TLS for clients its certificate.
func serve(cert, key string) []envoy.Edit {
	place := envoy.At(envoy.Listener, "filter_chains", 0, "transport_socket", "typed_config", "common_tls_context", "tls_certificates", 0)
	return []envoy.Edit{
		envoy.Set(cert, envoy.At(place, "certificate_chain", "filename")...),
		envoy.Set(key, envoy.At(place, "private_key", "filename")...),
	}
}

// TestClientTLSExample tries the example of the file.
func TestClientTLSExample(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(t, "localhost")
	e, _ := start(t, envoy.Options{Examples: []string{"client-tls"}, Edits: serve(cert, key)})
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	for _, alpn := range []string{"http/1.1", "h2"} {
		protocols := &http.Protocols{}
		protocols.SetHTTP1(alpn == "http/1.1")
		protocols.SetHTTP2(alpn == "h2")
		transport := &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}
		t.Cleanup(transport.CloseIdleConnections)
		r := do(t, &http.Client{Transport: transport, Timeout: patience}, http.MethodPost,
			"https://"+e.Addr+"/openai/v1/chat/completions", strings.NewReader(hello))
		wantAnswer(t, r)
	}
}

// TestGatewayExample tries the example of a gateway with a key of its own.
func TestGatewayExample(t *testing.T) {
	const own, given = "sk-ant-of-the-gateway", "change-me-to-a-long-random-string"
	up := standin.New(standin.Options{Keys: []string{own}, PageMax: 1})
	server := httptest.NewServer(up)
	t.Cleanup(server.Close)
	t.Cleanup(up.Close)
	e := envoy.New(t, envoy.Options{
		Upstreams: []string{server.URL},
		Examples:  []string{"gateway"},
		Plugin:    map[string]any{"upstream": map[string]any{"authority": "api.anthropic.com", "credentials": "gateway"}},
		Env:       []string{"ANTHROPIC_API_KEY=" + own},
	})
	c := client(t, false)
	for name, header := range map[string]string{"no key": "", "another key": "Bearer nothing", "the gateway's own key": "Bearer " + own, "another scheme": "Basic " + given} {
		r := chat(t, c, e, hello, "authorization", header)
		wantError(t, r, 401, "invalid_request_error")
		if !strings.Contains(r.Body, `"code":"invalid_api_key"`) {
			t.Errorf("%s: %s", name, r.Body)
		}
	}
	if sent := up.Requests(); len(sent) != 0 {
		t.Fatalf("the upstream got %d requests", len(sent))
	}
	wantAnswer(t, chat(t, c, e, hello, "authorization", "Bearer "+given))
	// The model list asks for further pages by itself: they need the key, too.
	r := do(t, c, http.MethodGet, e.URL+"/openai/v1/models", nil, "authorization", "Bearer "+given)
	if r.Status != 200 || strings.Count(r.Body, `"object":"model"`) < 2 {
		t.Errorf("the model list: %d %s", r.Status, r.Body)
	}
	sent := up.Requests()
	if len(sent) < 3 {
		t.Errorf("the upstream got %d requests, want one and two pages or more", len(sent))
	}
	for _, s := range sent {
		if s.Header.Get("x-api-key") != own || s.Header.Get("authorization") != "" {
			t.Errorf("%s went up with the keys %q and %q", s.Path, s.Header.Get("x-api-key"), s.Header.Get("authorization"))
		}
	}
	if log := e.Log(); strings.Contains(log, own) || strings.Contains(log, given) {
		t.Error("Envoy's log has a key")
	}
}
