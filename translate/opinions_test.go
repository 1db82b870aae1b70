// Fuzzing compiles all that a test imports with its counters, which takes minutes for the
// clients: build/fuzz.sh leaves this file out, nothing else does.
//go:build !fuzzing

package translate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicsse "github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/openai/openai-go/v3"
	openaisse "github.com/openai/openai-go/v3/packages/ssestream"

	"ezat.io/chat-completions/translate"
	"ezat.io/chat-completions/translate/cases"
)

// Second opinions: the two vendors' own Go clients read everything that the core
// writes, over the whole corpus. Where a client is known to read less than there is,
// the exception stands here with its reason, and must occur.

// exchange is a case of the corpus with what the core makes of it.
type exchange struct {
	*cases.Case
	outcome cases.Outcome
}

// finished tells whether the answer was given in full: outcome "ok" in its record.
func (x exchange) finished(t *testing.T) bool {
	t.Helper()
	if x.outcome.Usage == nil {
		return false
	}
	var record struct {
		Outcome string `json:"outcome"`
	}
	if err := json.Unmarshal(x.outcome.Usage, &record); err != nil {
		t.Fatal(err)
	}
	return record.Outcome == translate.OutcomeOK
}

// streamed tells whether the upstream answers with a stream.
func (x exchange) streamed() bool { return len(x.Calls) > 0 && isStream(x.Calls[0].Answer) }

// exchanges runs the corpus at the core, all but the model list.
func exchanges(t *testing.T) []exchange { return exchangesOf(t, http.MethodPost) }

func exchangesOf(t *testing.T, method string) []exchange {
	t.Helper()
	all, err := cases.All()
	if err != nil {
		t.Fatal(err)
	}
	var ran []exchange
	for _, c := range all {
		if !c.Runs(cases.Core) || c.Request.Method != method {
			continue
		}
		outcome, err := atCore(new(translate.Parser), c, whole)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		ran = append(ran, exchange{c, outcome})
	}
	return ran
}

// exceptions are the things in which a second opinion is known to differ, each with
// its reason. One that does not occur fails the test.
type exceptions struct {
	reasons map[string]string
	seen    map[string]bool
}

func except(reasons map[string]string) exceptions { return exceptions{reasons, map[string]bool{}} }

// has tells whether name is an exception, and notes that it occurred.
func (e exceptions) has(name string) bool {
	if e.reasons[name] == "" {
		return false
	}
	e.seen[name] = true
	return true
}

func (e exceptions) check(t *testing.T) {
	t.Helper()
	for name, reason := range e.reasons {
		if !e.seen[name] {
			t.Errorf("the exception %q does not occur: %s", name, reason)
		}
	}
}

// TestAnthropicSDKReadsRequests: the official client decodes every request that goes
// up, and what it writes from that is the same JSON value: nothing is unknown to it,
// and nothing has a type that it would bend.
func TestAnthropicSDKReadsRequests(t *testing.T) {
	fields := except(map[string]string{
		"stream":      "an option of the client's call, no field of its type",
		"temperature": "the client's type follows version 2026-10-21, which has no sampling; 2023-06-01 has",
		"top_p":       "the same",
	})
	bodies := except(map[string]string{
		"request/twice-passed-through": "of two equal keys the client keeps one",
	})
	read := 0
	for _, x := range exchanges(t) {
		for _, sent := range x.outcome.Upstream {
			read++
			if bodies.has(x.Name) {
				continue
			}
			if diff := anthropicDiff(sent.Body, fields); diff != "" {
				t.Errorf("%s: %s", x.Name, diff)
			}
		}
	}
	if read < 200 {
		t.Errorf("only %d requests were read", read)
	}
	fields.check(t)
	bodies.check(t)
}

// anthropicDiff says what the official client loses of a request or bends in it, but
// for top-level fields that are exceptions.
func anthropicDiff(body []byte, fields exceptions) string {
	var params anthropic.MessageNewParams
	if err := json.Unmarshal(body, &params); err != nil {
		return err.Error()
	}
	again, err := json.Marshal(params)
	if err != nil {
		return err.Error()
	}
	var sent, got map[string]any
	if err := errors.Join(json.Unmarshal(body, &sent), json.Unmarshal(again, &got)); err != nil {
		return err.Error()
	}
	maps.DeleteFunc(sent, func(name string, _ any) bool { return fields.has(name) })
	if !reflect.DeepEqual(sent, got) {
		return fmt.Sprintf("the client reads another request\nsent %s\nread %s", body, again)
	}
	return ""
}

// accumulated folds an upstream's stream with the official client. stopped tells that
// message_stop came.
func accumulated(body []byte) (m anthropic.Message, stopped bool, err error) {
	stream := anthropicsse.NewStream[anthropic.MessageStreamEventUnion](
		anthropicsse.NewDecoder(eventStream(body)), nil)
	for stream.Next() {
		event := stream.Current()
		if err := m.Accumulate(event); err != nil {
			return m, stopped, err
		}
		stopped = stopped || event.Type == "message_stop"
	}
	return m, stopped, stream.Err()
}

func eventStream(body []byte) *http.Response {
	return &http.Response{
		Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}},
		Body:   io.NopCloser(bytes.NewReader(body)),
	}
}

// TestAnthropicSDKReadsStreams: the official client's accumulator takes every stream
// that the core takes to its end, and finds the same message in it; it fails, or finds
// no end, where the core fails.
func TestAnthropicSDKReadsStreams(t *testing.T) {
	differ := except(map[string]string{
		"stream/after-stop":                     "the client reads on behind message_stop, and so meets the error there",
		"stream/framing":                        "the client takes no lone CR for the end of a line, and skips events that have no name",
		"stream/last-event-unfinished":          "the client drops a last event that no blank line ends",
		"stream/tool-input-in-start-and-deltas": "the client puts deltas behind an input that stands in the block's start, where they replace it",
	})
	read := 0
	for _, x := range exchanges(t) {
		if !x.streamed() {
			continue
		}
		read++
		upstream := x.Calls[0].Answer.Body
		m, stopped, err := accumulated(upstream)
		good := x.finished(t)
		if fine := err == nil && stopped; fine != good {
			if !differ.has(x.Name) {
				t.Errorf("%s: the core takes it to its end: %t; the client: stopped %t, error %v", x.Name, good, stopped, err)
			}
			continue
		}
		if !good || differ.has(x.Name) {
			continue
		}
		message, _ := foldUpstream(t, upstream)
		ours, theirs := answered(t, message), answered(t, []byte(m.RawJSON()))
		if diff := answersDiff(ours, theirs); diff != "" {
			t.Errorf("%s: the client folds another message: %s", x.Name, diff)
		}
	}
	if read < 80 {
		t.Errorf("only %d streams were read", read)
	}
	differ.check(t)
}

// TestAnthropicSDKReadsAnswers: the official client finds in every whole answer of the
// upstream what the core tells the OpenAI client.
func TestAnthropicSDKReadsAnswers(t *testing.T) {
	read := 0
	for _, x := range exchanges(t) {
		if x.streamed() || !x.finished(t) {
			continue
		}
		read++
		var m anthropic.Message
		if err := json.Unmarshal(x.Calls[0].Answer.Body, &m); err != nil {
			t.Errorf("%s: %v", x.Name, err)
			continue
		}
		got := decoded[openai.ChatCompletion](t, x.Name, x.outcome.Body)
		if diff := answersDiff(fromMessage(&m), got); diff != "" {
			t.Errorf("%s: the client reads another message: %s", x.Name, diff)
		}
	}
	if read < 150 {
		t.Errorf("only %d answers were read", read)
	}
}

// fromMessage is the answer that an upstream's message stands for, put together from
// what the official client has read of it.
func fromMessage(m *anthropic.Message) openai.ChatCompletion {
	var choice openai.ChatCompletionChoice
	for _, block := range m.Content {
		switch b := block.AsAny().(type) {
		case anthropic.TextBlock:
			choice.Message.Content += b.Text
		case anthropic.ToolUseBlock:
			call := openai.ChatCompletionMessageToolCallUnion{ID: b.ID, Type: "function"}
			call.Function.Name, call.Function.Arguments = b.Name, string(b.Input)
			choice.Message.ToolCalls = append(choice.Message.ToolCalls, call)
		}
	}
	switch m.StopReason {
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		choice.FinishReason = "length"
	case anthropic.StopReasonToolUse:
		choice.FinishReason = "tool_calls"
	case anthropic.StopReasonRefusal:
		choice.FinishReason = "content_filter"
	default:
		choice.FinishReason = "stop"
	}
	c := openai.ChatCompletion{Choices: []openai.ChatCompletionChoice{choice}}
	u := &m.Usage
	c.Usage.PromptTokens = u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens
	c.Usage.CompletionTokens = u.OutputTokens
	c.Usage.TotalTokens = c.Usage.PromptTokens + u.OutputTokens
	c.Usage.PromptTokensDetails.CachedTokens = u.CacheReadInputTokens
	c.Usage.PromptTokensDetails.CacheWriteTokens = u.CacheCreationInputTokens
	c.Usage.CompletionTokensDetails.ReasoningTokens = u.OutputTokensDetails.ThinkingTokens
	return c
}

// TestOpenAISDKReadsAnswers: the official client decodes every whole answer and every
// error that the core writes, knows all of its fields, and misses none.
func TestOpenAISDKReadsAnswers(t *testing.T) {
	answers, failures := 0, 0
	for _, x := range exchanges(t) {
		switch {
		case x.outcome.Status == 0 || chunked(x.outcome.Body):
		case x.outcome.Status == http.StatusOK:
			answers++
			c := decoded[openai.ChatCompletion](t, x.Name, x.outcome.Body)
			if len(c.Choices) != 1 || !slices.Contains(finishReasons, c.Choices[0].FinishReason) || c.Choices[0].Index != 0 {
				t.Errorf("%s: choices of %s", x.Name, x.outcome.Body)
			}
		default:
			failures++
			envelope := decodedMap(t, x.outcome.Body)
			if len(envelope) != 1 || envelope["error"] == nil {
				t.Errorf("%s: the envelope is %s", x.Name, x.outcome.Body)
			}
			e := decoded[openai.Error](t, x.Name, envelope["error"])
			if e.Message == "" || e.Type == "" {
				t.Errorf("%s: the client reads an error without message or type: %s", x.Name, x.outcome.Body)
			}
		}
	}
	if answers < 150 || failures < 150 {
		t.Errorf("only %d answers and %d errors were read", answers, failures)
	}
}

// TestOpenAISDKReadsModels: the official client knows every model of the list, and
// every single one.
func TestOpenAISDKReadsModels(t *testing.T) {
	read := 0
	for _, x := range exchangesOf(t, http.MethodGet) {
		if x.outcome.Status != http.StatusOK {
			continue
		}
		body := decodedMap(t, x.outcome.Body)
		list := []json.RawMessage{x.outcome.Body}
		if string(body["object"]) == `"list"` {
			if err := json.Unmarshal(body["data"], &list); err != nil || len(body) != 2 {
				t.Errorf("%s: %v: the list is %s", x.Name, err, x.outcome.Body)
			}
		}
		for _, model := range list {
			read++
			if m := decoded[openai.Model](t, x.Name, model); m.ID == "" || m.OwnedBy == "" {
				t.Errorf("%s: the client reads a model without id or owner: %s", x.Name, model)
			}
		}
	}
	if read < 8 {
		t.Errorf("only %d models were read", read)
	}
}

// TestFaultsAreFound: what the checks above rest on does find faults.
func TestFaultsAreFound(t *testing.T) {
	const call = `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`
	const good = `{"id":"i","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` +
		`{"role":"assistant","content":null,"refusal":null,"tool_calls":[` + call + `]},"logprobs":null,"finish_reason":"tool_calls"}]}`
	for _, change := range [][3]string{
		{``, ``, ``},
		{`"created":1`, `"created":1,"error":null`, `.error is unknown`},
		{`"name":"f"`, `"name":"f","caller":"direct"`, `.Choices[].Message.ToolCalls[].Function.caller is unknown`},
		{`"id":"i",`, ``, `.ID is missing`},
		{`"refusal":null,`, ``, `.Choices[].Message.Refusal is missing`},
		{`chat.completion`, `chat.completion.chunk`, `.Object is "chat.completion.chunk"`},
		{`"created":1`, `"created":"soon"`, `.Created has another type: "soon"`},
		{`"arguments":"{}"`, `"arguments":{}`, `.Choices[].Message.ToolCalls[].Function.Arguments has another type: {}`},
	} {
		var c openai.ChatCompletion
		if err := json.Unmarshal([]byte(strings.Replace(good, change[0], change[1], 1)), &c); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(faults("", reflect.ValueOf(c)), ", "); got != change[2] {
			t.Errorf("%s for %s: found %q, want %q", change[1], change[0], got, change[2])
		}
	}
}

// chunked tells a stream that the client gets by its end.
func chunked(body []byte) bool { return bytes.HasSuffix(body, []byte("data: [DONE]\n\n")) }

var finishReasons = []string{"stop", "length", "tool_calls", "content_filter"}

func decodedMap(t *testing.T, body []byte) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

// decoded is a body as the official client's type has it, every field of it held
// against that type.
func decoded[T any](t *testing.T, name string, body []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		t.Errorf("%s: %v: %s", name, err, body)
		return v
	}
	for _, fault := range faults("", reflect.ValueOf(v)) {
		t.Errorf("%s: %s: %s", name, fault, body)
	}
	return v
}

// TestOpenAISDKReadsStreams: the official client reads every stream that the core
// writes: its accumulator takes each chunk, it knows all fields, and it ends as the
// stream says.
func TestOpenAISDKReadsStreams(t *testing.T) {
	good, failed := 0, 0
	for _, x := range exchanges(t) {
		if x.outcome.Status != http.StatusOK || !chunked(x.outcome.Body) {
			continue
		}
		_, err := foldChunks(t, x.Name, x.outcome.Body)
		if x.finished(t) {
			good++
			if err != nil {
				t.Errorf("%s: %v", x.Name, err)
			}
			continue
		}
		failed++
		var streamError *openaisse.StreamError
		if !errors.As(err, &streamError) {
			t.Errorf("%s: the stream failed, and the client says %v", x.Name, err)
			continue
		}
		decoded[openai.Error](t, x.Name, decodedMap(t, streamError.Event.Data)["error"])
	}
	if good < 60 || failed < 10 {
		t.Errorf("only %d good streams and %d failed ones were read", good, failed)
	}
}

// foldChunks folds a client's stream with the official client, every chunk held
// against its type. Usage is that of the one chunk that has it: the accumulator does
// not count what is written to the cache.
func foldChunks(t *testing.T, name string, body []byte) (openai.ChatCompletion, error) {
	t.Helper()
	stream := openaisse.NewStream[openai.ChatCompletionChunk](openaisse.NewDecoder(eventStream(body)), nil)
	var fold openai.ChatCompletionAccumulator
	var usage *openai.CompletionUsage
	finishes := 0
	for stream.Next() {
		chunk := stream.Current()
		for _, fault := range faults("", reflect.ValueOf(chunk)) {
			t.Errorf("%s: %s: %s", name, fault, chunk.RawJSON())
		}
		if !fold.AddChunk(chunk) {
			t.Errorf("%s: the accumulator refuses %s", name, chunk.RawJSON())
		}
		if usage != nil {
			t.Errorf("%s: a chunk behind the usage: %s", name, chunk.RawJSON())
		}
		if chunk.JSON.Usage.Valid() {
			usage = &chunk.Usage
		}
		for _, choice := range chunk.Choices {
			if choice.FinishReason != "" {
				finishes++
			}
		}
	}
	if err := stream.Err(); err != nil {
		return fold.ChatCompletion, err
	}
	if !chunked(body) {
		return fold.ChatCompletion, errors.New("the stream does not end in [DONE]")
	}
	if finishes != 1 || len(fold.Choices) != 1 || !slices.Contains(finishReasons, fold.Choices[0].FinishReason) {
		return fold.ChatCompletion, fmt.Errorf("%d finish reasons, the choices are %+v", finishes, fold.Choices)
	}
	fold.Usage = openai.CompletionUsage{}
	if usage != nil {
		fold.Usage = *usage
	}
	return fold.ChatCompletion, nil
}

// TestFoldedStreamIsTheWholeAnswer: the chunks of each good stream of the corpus fold
// into the answer that the core gives to the same message as a whole.
func TestFoldedStreamIsTheWholeAnswer(t *testing.T) {
	cut := except(map[string]string{
		"streams/17-max-tokens-inside-tool": "the call's input is cut off, which no whole message can say",
	})
	folded := 0
	for _, x := range exchanges(t) {
		if !x.streamed() || !x.finished(t) {
			continue
		}
		message, whole := foldUpstream(t, x.Calls[0].Answer.Body)
		if !whole && cut.has(x.Name) {
			continue
		}
		folded++
		chunks, err := foldChunks(t, x.Name, streamed(x.Calls[0].Answer.Body, nil))
		if err != nil {
			t.Errorf("%s: %v", x.Name, err)
			continue
		}
		if diff := answersDiff(answered(t, message), chunks); diff != "" {
			t.Errorf("%s: the stream does not fold into the whole answer: %s\n%s", x.Name, diff, message)
		}
	}
	if folded < 50 {
		t.Errorf("only %d streams were folded", folded)
	}
	cut.check(t)
}

var (
	opinionReply = translate.Reply{Model: "anthropic/m", ModelJSON: `"anthropic/m"`, Stream: true, IncludeUsage: true}
	opinionFacts = translate.Answer{RequestID: cases.RequestID, Created: cases.Created}
)

// streamed is what the client gets for an upstream's stream, usage included. It
// arrives in pieces that end at the given offsets.
func streamed(upstream []byte, cuts []int) []byte {
	stream := translate.NewStream(opinionReply, opinionFacts, true)
	var body []byte
	from := 0
	for _, cut := range cuts {
		body = stream.Feed(body, upstream[from:cut], false)
		from = cut
	}
	return stream.Feed(body, upstream[from:], true)
}

// answered is what the client gets for an upstream's whole message.
func answered(t *testing.T, message []byte) openai.ChatCompletion {
	t.Helper()
	body, _, refusal := opinionReply.Answer(nil, message, opinionFacts)
	if refusal != nil {
		t.Fatalf("%v: %s", refusal, message)
	}
	return decoded[openai.ChatCompletion](t, "whole answer", body)
}

// answersDiff says in what two answers differ to a client; id, model and time only
// where both have them.
func answersDiff(a, b openai.ChatCompletion) string {
	var diff []string
	compare := func(what string, x, y any) {
		if !reflect.DeepEqual(x, y) {
			diff = append(diff, fmt.Sprintf("%s: %q and %q", what, fmt.Sprint(x), fmt.Sprint(y)))
		}
	}
	if a.ID != "" && b.ID != "" {
		compare("id", a.ID, b.ID)
		compare("model", a.Model, b.Model)
		compare("created", a.Created, b.Created)
	}
	compare("choices", len(a.Choices), len(b.Choices))
	for i := range min(len(a.Choices), len(b.Choices)) {
		x, y := &a.Choices[i], &b.Choices[i]
		compare("content", x.Message.Content, y.Message.Content)
		compare("tool_calls", callsOf(x.Message), callsOf(y.Message))
		compare("finish_reason", x.FinishReason, y.FinishReason)
	}
	compare("usage", numbersOf(a.Usage), numbersOf(b.Usage))
	return strings.Join(diff, "; ")
}

func callsOf(m openai.ChatCompletionMessage) []string {
	var calls []string
	for _, c := range m.ToolCalls {
		calls = append(calls, fmt.Sprintf("%s %s %s(%s)", c.Type, c.ID, c.Function.Name, c.Function.Arguments))
	}
	return calls
}

func numbersOf(u openai.CompletionUsage) [6]int64 {
	return [...]int64{
		u.PromptTokens, u.CompletionTokens, u.TotalTokens, u.PromptTokensDetails.CachedTokens,
		u.PromptTokensDetails.CacheWriteTokens, u.CompletionTokensDetails.ReasoningTokens,
	}
}
