package envoy_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
)

// buildFailing builds the module of testdata/failing.
func buildFailing(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "failing.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-o", path, "./testdata/failing")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// goCalls are what the Go compiler's smallest module asks of WASI besides the
// functions that the specification names; the product's module does without.
var goCalls = []string{"sched_yield", "poll_oneoff"}

// TestFailedModuleIsReplaced: a request at which the module fails is lost, and
// the ones after it are served, by a new VM.
func TestFailedModuleIsReplaced(t *testing.T) {
	allow := func(c *envoy.Config) error {
		for _, name := range goCalls {
			if err := c.Add(map[string]any{}, envoy.At(envoy.Filter, "capability_restriction_config", "allowed_capabilities", name)...); err != nil {
				return err
			}
		}
		return nil
	}
	e, up := start(t, envoy.Options{Module: buildFailing(t), FaultsExpected: true, Edits: []envoy.Edit{allow}})
	c := client(t, false)
	ask := func() int { return do(t, c, http.MethodGet, e.URL+"/openai/v1/models", nil).Status }
	// The module translates nothing, so the upstream does not know the path.
	if got := ask(); got != 404 {
		t.Fatalf("the first request: %d", got)
	}
	failed := do(t, c, http.MethodGet, e.URL+"/openai/v1/models", nil)
	wantError(t, failed, 503, "server_error") // at which the module fails
	if failed.Header.Get("retry-after") == "" {
		t.Error("the 503 of a failed module names no retry-after")
	}
	for end := time.Now().Add(patience); ask() != 404; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the module is not replaced")
		}
	}
	if faults := strings.Join(e.Faults(), "\n"); !strings.Contains(faults, "proxy_on_request_headers") {
		t.Errorf("the log does not speak of the fault: %q", faults)
	}
	if sent := up.Requests(); len(sent) != 2 {
		t.Errorf("the upstream got %d requests", len(sent))
	}
}

// TestRestrictedCallIsSeen: a module that asks for more than the list allows is
// noticed, so that the other tests' silence means something.
func TestRestrictedCallIsSeen(t *testing.T) {
	forbid := func(c *envoy.Config) error {
		return c.Remove(envoy.At(envoy.Filter, "capability_restriction_config", "allowed_capabilities", "proxy_increment_metric")...)
	}
	e, _ := start(t, envoy.Options{FaultsExpected: true, Edits: []envoy.Edit{forbid}})
	chat(t, client(t, false), e, hello)
	if faults := strings.Join(e.Faults(), "\n"); !strings.Contains(faults, "restricted proxy-wasm capability: proxy_increment_metric") {
		t.Errorf("a call outside the list went unnoticed: %q", faults)
	}
}

// TestOlderEnvoy is a smoke run on an Envoy whose proxy-wasm host is older, with
// the file for it.
func TestOlderEnvoy(t *testing.T) {
	e, up := start(t, envoy.Options{Version: envoy.Older, File: envoy.FileWithoutImages})
	protocols(t, func(t *testing.T, c *http.Client) {
		wantAnswer(t, chat(t, c, e, hello))
		if r := chat(t, c, e, helloStream); r.Status != 200 || !strings.HasSuffix(r.Body, "data: [DONE]\n\n") {
			t.Errorf("a stream: %d %q", r.Status, r.Body)
		}
		if r := do(t, c, http.MethodGet, e.URL+"/openai/v1/models", nil); r.Status != 200 || !strings.Contains(r.Body, "anthropic/claude-sonnet-5-5") {
			t.Errorf("the model list: %d %q", r.Status, r.Body)
		}
		wantError(t, chat(t, c, e, hello, "authorization", ""), 401, "invalid_request_error")
		wantError(t, chat(t, c, e, "{"), 400, "invalid_request_error")
		r := chat(t, c, e, strings.Replace(hello, `"Say hello."`, `[{"type":"image_url","image_url":{"url":"https://img.example.test/a.png"}}]`, 1))
		wantError(t, r, 400, "invalid_request_error")
		if !strings.Contains(r.Body, "messages[0].content[0].image_url.url: image downloads are turned off here") {
			t.Errorf("an image's URL: %s", r.Body)
		}
	})
	t.Run("paths", func(t *testing.T) { up.Reset(); testPaths(t, e, up) })
	t.Run("bodies", func(t *testing.T) { up.Reset(); testBodies(t, e, up) })
	t.Run("stream", func(t *testing.T) { up.Reset(); testStreamPasses(t, e, up) })
	t.Run("usage", func(t *testing.T) { up.Reset(); testUsageIsLogged(t, e, up) })
}
