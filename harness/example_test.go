package harness_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"ezat.io/chat-completions/harness"
)

// question is a request as an OpenAI client sends it.
var question = harness.Message{
	Headers: harness.NewHeaders(
		":method", "POST", ":path", "/openai/v1/chat/completions", ":authority", "api.example.com", ":scheme", "http",
		"authorization", "Bearer key", "content-type", "application/json"),
	Body: []byte(`{"model":"anthropic/claude-sonnet-5-5","messages":[{"role":"user","content":"Hello"}]}`),
}

// answer is what an upstream says to it.
var answer = harness.Message{
	Headers: harness.NewHeaders(":status", "200", "content-type", "application/json"),
	Body: []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"Hi."}],` +
		`"stop_reason":"end_turn","usage":{"input_tokens":8,"output_tokens":3}}`),
}

// start loads the module with one cluster that the example plays itself.
func start() *harness.Host {
	module, err := os.ReadFile("../build/out/chat-completions.wasm") // made by `make wasm`
	if err != nil {
		log.Fatal(err)
	}
	host, err := harness.New(context.Background(), module, harness.Config{
		PluginConfig: `{"upstream": {"authority": "api.anthropic.com"}}`,
		Clusters:     map[string]harness.Cluster{"anthropic": {}},
	})
	if err != nil {
		log.Fatal(err)
	}
	return host
}

// One exchange as a whole.
func ExampleHost_Do() {
	host := start()
	defer host.Close(context.Background())
	client, upstream, err := host.Do(context.Background(), harness.Exchange{
		Request:  question,
		Upstream: func(harness.Message) harness.Message { return answer },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("upstream:", upstream.Headers.Get(":authority"), upstream.Headers.Get(":path"))
	fmt.Println("client:", client.Headers.Get(":status"), strings.Contains(string(client.Body), `"content":"Hi."`))
	// Output:
	// upstream: api.anthropic.com /v1/messages
	// client: 200 true
}

// One exchange step by step: the test is the client and the upstream, and sees
// after each piece what has come out.
func ExampleHost_NewStream() {
	host := start()
	defer host.Close(context.Background())
	s := host.NewStream()
	must(s.RequestHeaders(question.Headers, false))
	fmt.Println("upstream after the headers:", s.Upstream().Began)
	half := len(question.Body) / 2
	must(s.RequestBody(question.Body[:half], false))
	must(s.RequestBody(question.Body[half:], false))
	must(s.RequestBody(nil, true)) // HTTP/1 tells the end on its own
	fmt.Println("upstream after the body:", s.Upstream().Ended)

	must(s.ResponseHeaders(answer.Headers, false))
	must(s.ResponseBody(answer.Body, true))
	fmt.Println("client:", s.Client().Headers.Get(":status"), s.Client().Ended)
	usage, _ := s.FilterState("wasm.ezat.usage")
	fmt.Println("usage recorded:", strings.Contains(usage, `"completion_tokens":3`))
	// Output:
	// upstream after the headers: false
	// upstream after the body: true
	// client: 200 true
	// usage recorded: true
}

// Real connections: the module between a client and an upstream.
func ExampleHost_Proxy() {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer.Body)
	}))
	defer upstream.Close()
	module, err := os.ReadFile("../build/out/chat-completions.wasm")
	if err != nil {
		log.Fatal(err)
	}
	host, err := harness.New(context.Background(), module, harness.Config{
		Clock:    harness.RealClock(),
		Clusters: map[string]harness.Cluster{"anthropic": {Transport: harness.NewTransport(), Authority: upstream.Listener.Addr().String()}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close(context.Background())
	gateway := httptest.NewServer(host.Proxy(harness.ProxyOptions{Prefix: "/openai/v1"}))
	defer gateway.Close()

	req, err := http.NewRequest("POST", gateway.URL+"/openai/v1/chat/completions", strings.NewReader(string(question.Body)))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer key")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.StatusCode, strings.Contains(string(body), `"content":"Hi."`))
	// Output:
	// 200 true
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
