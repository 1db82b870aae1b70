package envoy_test

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/build/wasmbin"
	"ezat.io/chat-completions/e2e/envoy"
)

// shipped reads the file as it is.
func shipped(t *testing.T, examples ...string) *envoy.Config {
	t.Helper()
	return shippedFile(t, envoy.File, examples...)
}

// shippedFile reads one of the shipped files as it is.
func shippedFile(t *testing.T, file string, examples ...string) *envoy.Config {
	t.Helper()
	root, err := envoy.Root()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	c, err := envoy.ParseConfig(source, examples...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func get(t *testing.T, c *envoy.Config, place ...any) any {
	t.Helper()
	v, err := c.Get(place...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestFilesLoad lets each version of Envoy load its file, module and all, with
// nothing replaced but the paths of files that differ from machine to machine.
func TestFilesLoad(t *testing.T) {
	for name, test := range map[string]struct {
		version, file string
		examples      []string
	}{
		"current":                  {envoy.Current, envoy.File, nil},
		"current, without images":  {envoy.Current, envoy.FileWithoutImages, nil},
		"older":                    {envoy.Older, envoy.FileWithoutImages, nil},
		"older, with its examples": {envoy.Older, envoy.FileWithoutImages, []string{"client-tls", "gateway"}}, // other tests run them on the current one
	} {
		t.Run(name, func(t *testing.T) {
			if log, err := validate(t, test.version, test.file, test.examples...); err != nil {
				t.Errorf("%v\n%s", err, log)
			}
		})
	}
}

// TestOlderEnvoyRefusesImages: an Envoy that knows no filter of addresses does
// not serve without one.
func TestOlderEnvoyRefusesImages(t *testing.T) {
	log, err := validate(t, envoy.Older, envoy.File)
	if err == nil || !strings.Contains(log, "resolved_address_filter") {
		t.Errorf("%v\n%s", err, log)
	}
}

// validate lets Envoy load one of the shipped files.
func validate(t *testing.T, version, file string, examples ...string) (string, error) {
	t.Helper()
	root, err := envoy.Root()
	if err != nil {
		t.Fatal(err)
	}
	authority := newAuthority(t)
	cert, key := authority.issue(t, "localhost")
	c := shippedFile(t, file, examples...)
	edits := []envoy.Edit{
		envoy.Set(filepath.Join(root, "build", "out", "chat-completions.wasm"), envoy.At(envoy.Filter, "vm_config", "code", "local", "filename")...),
		envoy.Set(authority.path, envoy.At(envoy.Cluster, "transport_socket", "typed_config", "common_tls_context", "validation_context", "trusted_ca", "filename")...),
	}
	if file == envoy.File {
		edits = append(edits, envoy.Set(authority.path, envoy.At(envoy.ImageTLS, "common_tls_context", "validation_context", "trusted_ca", "filename")...))
	}
	if examples != nil {
		edits = append(edits, serve(cert, key)...)
	}
	for _, edit := range edits {
		if err := edit(c); err != nil {
			t.Fatal(err)
		}
	}
	return envoy.Validate(t.Context(), version, c, "ANTHROPIC_API_KEY=of-the-gateway")
}

func TestOnlyThisMachineCanConnect(t *testing.T) {
	c := shipped(t)
	for _, place := range [][]any{{"admin", "address"}, envoy.At(envoy.Listener, "address")} {
		host, _ := get(t, c, envoy.At(place, "socket_address", "address")...).(string)
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			t.Errorf("%v listens on %q", place, host)
		}
	}
}

func TestModuleIsReplacedWhenItFails(t *testing.T) {
	c := shipped(t)
	if got := get(t, c, envoy.At(envoy.Filter, "failure_policy")...); got != "FAIL_RELOAD" {
		t.Errorf("failure_policy is %v", got)
	}
	if got := get(t, c, envoy.At(envoy.Filter, "allow_on_headers_stop_iteration")...); got != true {
		t.Errorf("allow_on_headers_stop_iteration is %v", got)
	}
}

// TestCapabilities holds the list in the file against the module: what it
// imports, and the callbacks that it exports, nothing else and nothing less.
func TestCapabilities(t *testing.T) {
	root, err := envoy.Root()
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(filepath.Join(root, "build", "out", "chat-completions.wasm"))
	if err != nil {
		t.Fatalf("run `make wasm`: %v", err)
	}
	imports, err := wasmbin.Imports(module)
	if err != nil {
		t.Fatal(err)
	}
	exports, err := wasmbin.Exports(module)
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, i := range imports {
		used = append(used, i.Name)
	}
	for _, e := range exports {
		// Envoy asks nobody before it calls the allocator.
		if strings.HasPrefix(e.Name, "proxy_on_") && e.Name != "proxy_on_memory_allocate" {
			used = append(used, e.Name)
		}
	}
	slices.Sort(used)
	used = slices.Compact(used)
	list, ok := get(t, shipped(t), envoy.At(envoy.Filter, "capability_restriction_config", "allowed_capabilities")...).(map[string]any)
	if !ok {
		t.Fatal("the list is not a mapping")
	}
	if allowed := slices.Sorted(maps.Keys(list)); !slices.Equal(allowed, used) {
		t.Errorf("the file allows\n%v\nthe module uses\n%v", allowed, used)
	}
}

// duration reads a duration of the file.
func duration(t *testing.T, c *envoy.Config, place ...any) time.Duration {
	t.Helper()
	text, _ := get(t, c, place...).(string)
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%v: %v", place, err)
	}
	return d
}

// TestNothingCutsAHealthyAnswer: a whole answer may be silent for 590 s.
func TestNothingCutsAHealthyAnswer(t *testing.T) {
	const whole = 590 * time.Second
	c := shipped(t)
	for _, place := range [][]any{
		envoy.At(envoy.HCM, "stream_idle_timeout"),
		envoy.At(envoy.HCM, "common_http_protocol_options", "idle_timeout"),
	} {
		if d := duration(t, c, place...); d <= whole {
			t.Errorf("%v is %v, not above %v", place, d, whole)
		}
	}
	routes := envoy.At(envoy.HCM, "route_config", "virtual_hosts", "openai", "routes")
	unset := [][]any{
		envoy.At(envoy.HCM, "common_http_protocol_options", "max_stream_duration"),
		envoy.At(envoy.HCM, "common_http_protocol_options", "max_connection_duration"),
	}
	for i := range 2 { // the client's path, and the one that goes up
		route := envoy.At(routes, i, "route")
		if d := duration(t, c, envoy.At(route, "timeout")...); d != 0 {
			t.Errorf("the timeout of route %d is %v: it would cut streams", i, d)
		}
		unset = append(unset, envoy.At(route, "max_stream_duration"), envoy.At(route, "retry_policy"))
	}
	for _, place := range unset {
		if v, err := c.Get(place...); err == nil {
			t.Errorf("%v is set to %v", place, v)
		}
	}
	// A route's idle time stays when a later route says none.
	if d := duration(t, c, envoy.At(routes, 1, "route", "idle_timeout")...); d <= whole {
		t.Errorf("a request that has gone up may be silent for %v", d)
	}
	// Downloads wait for 15 s and take 15 s.
	if d := duration(t, c, envoy.At(routes, 0, "route", "idle_timeout")...); d < 45*time.Second {
		t.Errorf("a request that waits for pictures may be silent for %v", d)
	}
}

// TestLogNamesNoSecrets: of the headers, only ids and the hosts of images are
// logged, and no query.
func TestLogNamesNoSecrets(t *testing.T) {
	for _, log := range []struct {
		place []any
		fine  []string
	}{
		{envoy.HCM, []string{"%REQ(:METHOD)%", "%FILTER_STATE(client.path:PLAIN)%", "%REQ(X-REQUEST-ID)%", "%RESP(REQUEST-ID)%"}},
		{envoy.Egress, []string{"%REQ(:AUTHORITY)%"}},
	} {
		format, err := json.Marshal(get(t, shipped(t), envoy.At(log.place, "access_log")...))
		if err != nil {
			t.Fatal(err)
		}
		text := string(format)
		for _, fine := range log.fine {
			if !strings.Contains(text, fine) {
				t.Errorf("%s is not in the format", fine)
			}
			text = strings.ReplaceAll(text, fine, "")
		}
		for _, reader := range []string{"REQ(", "RESP(", "PATH", "TRAILER(", "FILTER_STATE(client", "DYNAMIC_METADATA", "HEADER"} {
			if strings.Contains(text, reader) {
				t.Errorf("%s… is logged: %s", reader, format)
			}
		}
	}
}

func testUsageIsLogged(t *testing.T, e *envoy.Envoy, up upstream) {
	c := client(t, false)
	r := chat(t, c, e, hello, "x-extra", "sk-in-a-header")
	wantAnswer(t, r)
	line, err := e.WaitAccess(within(t), func(a envoy.Access) bool { return a.Fields["request_id"] == r.Header.Get("request-id") })
	if err != nil {
		t.Fatal(err)
	}
	var usage struct {
		Model, Outcome   string
		Status           int
		CompletionTokens int `json:"completion_tokens"`
	}
	if err := json.Unmarshal(line.Usage, &usage); err != nil {
		t.Fatalf("%v: %s", err, line.Line)
	}
	if usage.Model != "anthropic/claude-sonnet-5-5" || usage.Outcome != "ok" || usage.Status != 200 || usage.CompletionTokens == 0 {
		t.Errorf("%s", line.Line)
	}
	if line.Status != "200" || line.Method != "POST" || !strings.HasSuffix(up.URL, line.Fields["upstream"]) {
		t.Errorf("%s", line.Line)
	}

	do(t, c, http.MethodGet, e.URL+"/v1/secret?key=sk-in-the-query", nil)
	if _, err := e.WaitAccess(within(t), func(a envoy.Access) bool { return a.Path == "/v1/secret" && a.Status == "404" }); err != nil {
		t.Error(err)
	}
	all, err := e.AccessLog()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if strings.Contains(a.Line, "sk-") || strings.Contains(a.Line, "hello") {
			t.Errorf("the access log has a secret: %s", a.Line)
		}
	}
	if log := e.Log(); strings.Contains(log, "sk-") || strings.Contains(log, "hello") {
		t.Error("Envoy's log has a secret")
	}
}
