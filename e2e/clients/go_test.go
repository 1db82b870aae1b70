package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// Models of the checks: one thinks unless told otherwise, one does not.
const (
	thinker = "anthropic/claude-sonnet-5-5"
	plain   = "anthropic/claude-opus-4-8"
)

// goClient runs the checks of openai-go.
func goClient(t *testing.T, baseURL string) {
	c := goCheck{openai.NewClient(option.WithBaseURL(baseURL), option.WithAPIKey(key), option.WithMaxRetries(0))}
	for name, check := range map[string]func(*testing.T, goCheck){
		"whole": goWhole, "thinking": goThinking, "roles": goRoles, "finish reasons": goFinishReasons,
		"stream": goStream, "stream with usage": goStreamUsage, "many streams": goManyStreams, "left early": goLeftEarly,
		"refused fields": goRefused, "keys": goKeys, "unknown model": goUnknownModel, "limits and load": goLoad,
		"too large": goTooLarge, "failing streams": goFailingStreams, "models": goModels,
		"tool loop": goToolLoop, "structured output": goStructured, "forty turns": goFortyTurns,
	} {
		t.Run(name, func(t *testing.T) { check(t, c) })
	}
}

type goCheck struct{ openai.Client }

func ask(model, text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
	}
}

// whole asks without a stream and checks what holds for every answer.
func (c goCheck) whole(t *testing.T, params openai.ChatCompletionNewParams) openai.ChatCompletion {
	t.Helper()
	var resp *http.Response
	got, err := c.Chat.Completions.New(t.Context(), params, option.WithResponseInto(&resp))
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != "chatcmpl-"+resp.Header.Get("x-request-id") || resp.Header.Get("request-id") != resp.Header.Get("x-request-id") {
		t.Errorf("id %s, request-id %q, x-request-id %q", got.ID, resp.Header.Get("request-id"), resp.Header.Get("x-request-id"))
	}
	if got.Object != "chat.completion" || got.Model != params.Model || got.Created < 1_700_000_000 || len(got.Choices) != 1 {
		t.Fatalf("answer %s", got.RawJSON())
	}
	choice := got.Choices[0]
	if choice.Index != 0 || choice.Message.Role != "assistant" || choice.Message.JSON.Refusal.Raw() != "null" || choice.JSON.Logprobs.Raw() != "null" {
		t.Errorf("choice %s", choice.RawJSON())
	}
	if extra := len(got.JSON.ExtraFields) + len(choice.JSON.ExtraFields) + len(choice.Message.JSON.ExtraFields); extra > 0 {
		t.Errorf("unknown fields in %s", got.RawJSON())
	}
	addsUp(t, got.Usage)
	return *got
}

// addsUp checks that the counts of one answer fit together.
func addsUp(t *testing.T, u openai.CompletionUsage) {
	t.Helper()
	cached, written := u.PromptTokensDetails.CachedTokens, u.PromptTokensDetails.CacheWriteTokens
	reasoning := u.CompletionTokensDetails.ReasoningTokens
	if u.PromptTokens <= 0 || u.CompletionTokens <= 0 || u.TotalTokens != u.PromptTokens+u.CompletionTokens ||
		cached < 0 || written < 0 || cached+written > u.PromptTokens || reasoning < 0 || reasoning > u.CompletionTokens {
		t.Errorf("usage does not add up: %s", u.RawJSON())
	}
}

// streamed asks with a stream, checks what holds for every stream, and
// returns its text, the reason of its end and its usage.
func (c goCheck) streamed(t *testing.T, params openai.ChatCompletionNewParams) (openai.ChatCompletion, *openai.CompletionUsage) {
	t.Helper()
	var resp *http.Response
	stream := c.Chat.Completions.NewStreaming(t.Context(), params, option.WithResponseInto(&resp))
	var folded openai.ChatCompletionAccumulator
	var chunks []openai.ChatCompletionChunk
	for stream.Next() {
		chunk := stream.Current()
		if !folded.AddChunk(chunk) {
			t.Fatalf("the accumulator does not take %s", chunk.RawJSON())
		}
		if chunk.ID != "chatcmpl-"+resp.Header.Get("x-request-id") || chunk.Model != params.Model || chunk.Object != "chat.completion.chunk" || len(chunk.JSON.ExtraFields) > 0 {
			t.Errorf("chunk %s", chunk.RawJSON())
		}
		chunks = append(chunks, chunk)
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	var usage *openai.CompletionUsage
	if params.StreamOptions.IncludeUsage.Value {
		last := chunks[len(chunks)-1]
		chunks = chunks[:len(chunks)-1]
		if len(last.Choices) != 0 {
			t.Errorf("usage chunk %s", last.RawJSON())
		}
		usage = &last.Usage
		addsUp(t, *usage)
	}
	chunksFormed(t, chunks, usage != nil)
	return folded.ChatCompletion, usage
}

func chunksFormed(t *testing.T, chunks []openai.ChatCompletionChunk, withUsage bool) {
	t.Helper()
	for i, chunk := range chunks {
		if usage := chunk.JSON.Usage.Raw(); withUsage && usage != "null" || !withUsage && usage != "" {
			t.Errorf("usage in chunk %d: %s", i, chunk.RawJSON())
		}
		if len(chunk.Choices) != 1 || (chunk.Choices[0].FinishReason != "") != (i == len(chunks)-1) || chunk.Created != chunks[0].Created {
			t.Errorf("chunk %d: %s", i, chunk.RawJSON())
		}
	}
	first, last := chunks[0].Choices[0].Delta, chunks[len(chunks)-1].Choices[0].Delta
	if first.RawJSON() != `{"role":"assistant","content":""}` || last.RawJSON() != `{}` {
		t.Errorf("first delta %s, last delta %s", first.RawJSON(), last.RawJSON())
	}
}

// refused wants an error of one status and envelope.
func refused(t *testing.T, what string, err error, status int, message, kind, code string) {
	t.Helper()
	var api *openai.Error
	if !errors.As(err, &api) {
		t.Errorf("%s: %v, want a status of %d", what, err, status)
		return
	}
	if api.StatusCode != status || api.Type != kind || api.Code != code || (api.Param != "") != (code == "model_not_found") || !strings.Contains(api.Message, message) {
		t.Errorf("%s: %d %s, want %d, type %s, code %s: %s", what, api.StatusCode, api.RawJSON(), status, kind, code, message)
	}
	if id := api.Response.Header.Get("x-request-id"); id == "" || id != api.Response.Header.Get("request-id") {
		t.Errorf("%s: headers %v", what, api.Response.Header)
	}
}

func goWhole(t *testing.T, c goCheck) {
	got := c.whole(t, ask(plain, "Count from 1 to 5"))
	if got.Choices[0].Message.Content != "1\n2\n3\n4\n5" || got.Choices[0].FinishReason != "stop" || got.Usage.CompletionTokensDetails.ReasoningTokens != 0 {
		t.Errorf("answer %s", got.RawJSON())
	}
}

func goThinking(t *testing.T, c goCheck) {
	params := ask(thinker, "Count from 1 to 5")
	params.ReasoningEffort = shared.ReasoningEffortHigh
	got := c.whole(t, params)
	if got.Choices[0].Message.Content != "1\n2\n3\n4\n5" || got.Usage.CompletionTokensDetails.ReasoningTokens == 0 {
		t.Errorf("answer %s", got.RawJSON())
	}
}

func goRoles(t *testing.T, c goCheck) {
	const said = "naïve 🙂 \u2028 \"quoted\" \\ <b>&amp;</b>"
	first := c.whole(t, ask(plain, "Count from 1 to 5"))
	got := c.whole(t, openai.ChatCompletionNewParams{
		Model: plain,
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage("Be brief."), openai.DeveloperMessage("Be kind."),
			openai.UserMessage("Count from 1 to 5"), first.Choices[0].Message.ToParam(),
			openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
				openai.TextContentPart("Repeat after me: a"), openai.TextContentPart(said),
			}),
		},
	})
	if content := got.Choices[0].Message.Content; content != "a\n"+said {
		t.Errorf("content %q", content)
	}
}

func goFinishReasons(t *testing.T, c goCheck) {
	stopped, cut, refusal := ask(plain, "Count from 1 to 5"), ask(plain, "Count from 1 to 5"), ask(plain, "STANDIN_REFUSE")
	stopped.Stop = openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"x", "4"}}
	cut.MaxCompletionTokens, cut.MaxTokens = openai.Int(2), openai.Int(1)
	for reason, test := range map[string]struct {
		params  openai.ChatCompletionNewParams
		content string
	}{
		"stop": {stopped, "1\n2\n3\n"}, "length": {cut, "1\n2\n3\n4\n"},
	} {
		got, _ := c.streamed(t, test.params)
		for _, choice := range []openai.ChatCompletionChoice{c.whole(t, test.params).Choices[0], got.Choices[0]} {
			if choice.FinishReason != reason || choice.Message.Content != test.content {
				t.Errorf("%s with %q, want %s with %q", choice.FinishReason, choice.Message.Content, reason, test.content)
			}
		}
	}
	got, err := c.Chat.Completions.New(t.Context(), refusal)
	if err != nil || got.Choices[0].FinishReason != "content_filter" {
		t.Errorf("refusal: %v, %v", got, err)
	}
	if streamed, _ := c.streamed(t, refusal); streamed.Choices[0].FinishReason != "content_filter" {
		t.Errorf("streamed refusal: %s", streamed.Choices[0].FinishReason)
	}
}

func goStream(t *testing.T, c goCheck) {
	got, _ := c.streamed(t, ask(plain, "Count from 1 to 5"))
	if got.Choices[0].Message.Content != "1\n2\n3\n4\n5" || got.Choices[0].FinishReason != "stop" {
		t.Errorf("folded: %+v", got.Choices[0])
	}
}

func goStreamUsage(t *testing.T, c goCheck) {
	for _, model := range []string{plain, thinker} {
		params := ask(model, "Count from 1 to 5")
		whole := c.whole(t, params)
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		got, usage := c.streamed(t, params)
		if got.Choices[0].Message.Content != whole.Choices[0].Message.Content || usage.PromptTokens != whole.Usage.PromptTokens ||
			usage.CompletionTokens != whole.Usage.CompletionTokens || usage.CompletionTokensDetails.ReasoningTokens != whole.Usage.CompletionTokensDetails.ReasoningTokens {
			t.Errorf("streamed %+v with %s, whole %s", got.Choices[0], usage.RawJSON(), whole.RawJSON())
		}
	}
}

func goManyStreams(t *testing.T, c goCheck) {
	for n := range 16 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			text := fmt.Sprintf("stream %d", n) + strings.Repeat("é🙂", n)
			if got, _ := c.streamed(t, ask(plain, "Repeat after me: "+text)); got.Choices[0].Message.Content != text {
				t.Errorf("content %q", got.Choices[0].Message.Content)
			}
		})
	}
}

func goLeftEarly(t *testing.T, c goCheck) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	params := ask(plain, "Write 2000 words")
	params.MaxTokens = openai.Int(8000)
	stream := c.Chat.Completions.NewStreaming(ctx, params)
	if !stream.Next() {
		t.Fatal(stream.Err())
	}
	leave()
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	goWhole(t, c)
}

func goRefused(t *testing.T, c goCheck) {
	set := func(change func(*openai.ChatCompletionNewParams)) openai.ChatCompletionNewParams {
		params := ask(plain, "Hi")
		change(&params)
		return params
	}
	for message, params := range map[string]openai.ChatCompletionNewParams{
		"n: only 1 choice per request is supported":                                 set(func(p *openai.ChatCompletionNewParams) { p.N = openai.Int(2) }),
		"logprobs: log probabilities are not available":                             set(func(p *openai.ChatCompletionNewParams) { p.Logprobs = openai.Bool(true) }),
		"top_logprobs: log probabilities are not available":                         set(func(p *openai.ChatCompletionNewParams) { p.TopLogprobs = openai.Int(0) }),
		"logit_bias: is not supported":                                              set(func(p *openai.ChatCompletionNewParams) { p.LogitBias = map[string]int64{"1": 1} }),
		"modalities: only text output is supported":                                 set(func(p *openai.ChatCompletionNewParams) { p.Modalities = []string{"audio"} }),
		"reasoning_effort: use one of none, minimal, low, medium, high, xhigh, max": set(func(p *openai.ChatCompletionNewParams) { p.ReasoningEffort = "huge" }),
		"messages: must contain at least one user message": set(func(p *openai.ChatCompletionNewParams) {
			p.Messages = []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("x")}
		}),
		`response_format: type "json_object" is not supported; use "json_schema"`: set(func(p *openai.ChatCompletionNewParams) {
			p.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
		}),
		"web_search_options: is not supported": set(func(p *openai.ChatCompletionNewParams) {
			p.SetExtraFields(map[string]any{"web_search_options": map[string]any{}})
		}),
		"model: ": set(func(p *openai.ChatCompletionNewParams) {
			p.SetExtraFields(map[string]any{"model": param.Null[string]()})
		}),
	} {
		_, err := c.Chat.Completions.New(t.Context(), params)
		refused(t, message, err, 400, message, "invalid_request_error", "")
		stream := c.Chat.Completions.NewStreaming(t.Context(), params)
		if stream.Next() {
			t.Errorf("%s: the stream began", message)
		}
		refused(t, message+" (stream)", stream.Err(), 400, message, "invalid_request_error", "")
	}
}

func goKeys(t *testing.T, c goCheck) {
	other := option.WithAPIKey("sk-of-nobody")
	_, err := c.Chat.Completions.New(t.Context(), ask(plain, "Hi"), other)
	refused(t, "wrong key", err, 401, "", "invalid_request_error", "invalid_api_key")
	_, err = c.Models.List(t.Context(), other)
	refused(t, "wrong key, models", err, 401, "", "invalid_request_error", "invalid_api_key")
	_, err = c.Chat.Completions.New(t.Context(), ask(plain, "Hi"), option.WithHeaderDel("authorization"))
	refused(t, "no key", err, 401, "", "invalid_request_error", "invalid_api_key")
}

func goUnknownModel(t *testing.T, c goCheck) {
	const message = "The model `gpt-9` does not exist or you do not have access to it."
	_, err := c.Chat.Completions.New(t.Context(), ask("gpt-9", "Hi"))
	refused(t, "chat", err, 404, message, "invalid_request_error", "model_not_found")
	_, err = c.Models.Get(t.Context(), "gpt-9")
	refused(t, "model", err, 404, message, "invalid_request_error", "model_not_found")
}

func goLoad(t *testing.T, c goCheck) {
	for word, want := range map[string]struct {
		status     int
		kind, code string
	}{
		"STANDIN_RATE_LIMITED": {429, "rate_limit_error", "rate_limit_exceeded"},
		"STANDIN_OVERLOADED":   {503, "server_error", "overloaded"},
		"STANDIN_MIDWAY_FAIL":  {500, "server_error", ""},
	} {
		_, err := c.Chat.Completions.New(t.Context(), ask(plain, word))
		refused(t, word, err, want.status, "", want.kind, want.code)
	}
}

func goTooLarge(t *testing.T, c goCheck) {
	_, err := c.Chat.Completions.New(t.Context(), ask(plain, strings.Repeat("x", 33_554_433)))
	refused(t, "33 MB", err, 413, "", "invalid_request_error", "request_too_large")
	goWhole(t, c)
}

func goFailingStreams(t *testing.T, c goCheck) {
	for _, word := range []string{"STANDIN_MIDWAY_FAIL", "STANDIN_MIDWAY_CUT"} {
		stream := c.Chat.Completions.NewStreaming(t.Context(), ask(plain, "Count from 1 to 50 "+word))
		text := ""
		for stream.Next() {
			text += stream.Current().Choices[0].Delta.Content
		}
		if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "server_error") || !strings.HasPrefix(text, "1\n2\n") {
			t.Errorf("%s: %v after %q", word, err, text)
		}
	}
}

func goModels(t *testing.T, c goCheck) {
	pages := c.Models.ListAutoPaging(t.Context())
	var ids []string
	listed := map[string]string{}
	for pages.Next() {
		m := pages.Current()
		if m.Object != "model" || m.OwnedBy != "anthropic" || m.Created < 1_600_000_000 || len(m.JSON.ExtraFields) > 0 || slices.Contains(ids, m.ID) {
			t.Errorf("model %s", m.RawJSON())
		}
		ids = append(ids, m.ID)
		listed[m.ID] = m.RawJSON()
	}
	if err := pages.Err(); err != nil || !slices.Contains(ids, plain) || !slices.Contains(ids, thinker) {
		t.Fatalf("models %v, %v", ids, err)
	}
	one, err := c.Models.Get(t.Context(), thinker)
	if err != nil {
		t.Fatal(err)
	}
	if one.RawJSON() != listed[thinker] || !json.Valid([]byte(one.RawJSON())) {
		t.Errorf("one model %s, in the list %s", one.RawJSON(), listed[thinker])
	}
}
