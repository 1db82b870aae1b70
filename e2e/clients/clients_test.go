// Package clients_test runs real OpenAI clients against a real Envoy, which
// has the strict stand-in behind it. The scripts run against any gateway with
// that stand-in, for example that of `make run`:
//
//	BASE_URL=http://127.0.0.1:10000/openai/v1 API_KEY=test build/out/clients/bin/python e2e/clients/python/openai_chat.py
//
// Checks of keys need a stand-in that knows its keys, as here.
package clients_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
)

// patience bounds one run of a client's checks; nothing good comes near it.
const patience = 5 * time.Minute

// key is the only one that the stand-in takes.
const key = "sk-of-the-clients"

// gateway starts Envoy in front of a stand-in and returns what clients use
// as base URL.
func gateway(t *testing.T) (string, *standin.Server) {
	t.Helper()
	// A page of the model list is short, so that the list has several.
	upstream := standin.New(standin.Options{Keys: []string{key}, PageMax: 7, RecordsMax: 4096})
	listener := httptest.NewServer(upstream)
	t.Cleanup(func() {
		upstream.Close()
		listener.CloseClientConnections()
		listener.Close()
	})
	e := envoy.New(t, envoy.Options{Upstreams: []string{listener.URL}, Concurrency: 2})
	return e.URL + "/openai/v1", upstream
}

// run runs a program with the gateway's address and fails with its output.
func run(t *testing.T, baseURL string, program ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Env = append(os.Environ(), "BASE_URL="+baseURL, "API_KEY="+key, "PYTHONDONTWRITEBYTECODE=1")
	cmd.WaitDelay = 10 * time.Second
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(program[len(program)-1]), err, out)
	}
	t.Logf("\n%s", out)
}

// python returns the interpreter that has the pinned packages.
func python(t *testing.T) string {
	t.Helper()
	return installed(t, "build", "out", "clients", "bin", "python")
}

// node returns the command that runs a script with the pinned packages,
// which node finds beside the script.
func node(t *testing.T) string {
	t.Helper()
	installed(t, "e2e", "clients", "node", "node_modules", "openai", "package.json")
	return "node"
}

func installed(t *testing.T, path ...string) string {
	t.Helper()
	root, err := envoy.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(append([]string{root}, path...)...)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("run `make tools`: %v", err)
	}
	return file
}

func TestClients(t *testing.T) {
	baseURL, upstream := gateway(t)
	for _, script := range []string{"openai_chat", "openai_agent", "langchain_agent", "pydantic_ai_agent", "openai_agents_agent"} {
		t.Run("python/"+script, func(t *testing.T) { run(t, baseURL, python(t), "python/"+script+".py") })
	}
	for _, script := range []string{"openai_chat", "openai_agent", "ai_sdk"} {
		t.Run("node/"+script, func(t *testing.T) { run(t, baseURL, node(t), "node/"+script+".mjs") })
	}
	t.Run("go", func(t *testing.T) { goClient(t, baseURL) })
	for _, r := range upstream.Requests() {
		if r.Refusal != nil && r.Refusal.Status == 400 && !expected(r) {
			t.Errorf("the upstream refused a translated request: %v\n%.500s", r.Refusal, r.Body)
		}
	}
}

// expected tells the requests whose refusal by the upstream is wanted, because
// no rule of the contract refuses them before: an effort that the model lacks,
// a forced call on a model that cannot be forced, a schema with bounds.
func expected(r *standin.Recorded) bool {
	body := gjson.ParseBytes(r.Body)
	model, choice := body.Get("model").Str, body.Get("tool_choice.type").Str
	return body.Get("output_config.effort").Str == "xhigh" && model == "claude-opus-4-6" ||
		(choice == "any" || choice == "tool") && model == "claude-sonnet-5-5" ||
		body.Get("output_config.format.schema.properties.inhabitants.minimum").Exists()
}
