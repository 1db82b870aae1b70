// Fuzzing compiles all that a test imports with its counters, which takes minutes for the
// clients: build/fuzz.sh leaves this file out, nothing else does.
//go:build !fuzzing

package standin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// client is the official SDK in front of a stand-in.
func client(t *testing.T) anthropic.Client {
	t.Helper()
	_, url := serve(t, Options{Keys: []string{"key"}})
	return anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("key"), option.WithMaxRetries(0))
}

func ask1(model anthropic.Model, text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: model, MaxTokens: 400,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	}
}

// folded streams a request and returns what the SDK folds the events into.
func folded(t *testing.T, c anthropic.Client, params anthropic.MessageNewParams) anthropic.Message {
	t.Helper()
	stream := c.Messages.NewStreaming(t.Context(), params)
	var m anthropic.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSDKReadsBothForms asks whole and streamed, and compares what the
// official SDK makes of the two.
func TestSDKReadsBothForms(t *testing.T) {
	weather := anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
		Name: "get_weather",
		InputSchema: anthropic.ToolInputSchemaParam{
			Properties: map[string]any{"city": map[string]any{"type": "string"}}, Required: []string{"city"},
		},
	}}
	tool := ask1(anthropic.ModelClaudeSonnet5_5, "Use get_weather for Oslo and Rome")
	tool.Tools = []anthropic.ToolUnionParam{weather}
	stopped := ask1(anthropic.ModelClaudeOpus4_8, "Count from 1 to 9")
	stopped.StopSequences = []string{"5"}
	short := ask1(anthropic.ModelClaudeOpus4_8, "Write 100 words")
	short.MaxTokens = 10
	for name, test := range map[string]struct {
		params anthropic.MessageNewParams
		reason anthropic.StopReason
		blocks int
	}{
		"text":     {ask1(anthropic.ModelClaudeOpus4_8, "Hi"), anthropic.StopReasonEndTurn, 1},
		"thinking": {ask1(anthropic.ModelClaudeSonnet4_6, "Hi"), anthropic.StopReasonEndTurn, 1},
		"omitted":  {ask1(anthropic.ModelClaudeSonnet5_5, "Repeat after me: é🙂"), anthropic.StopReasonEndTurn, 2},
		"tools":    {tool, anthropic.StopReasonToolUse, 3},
		"stop":     {stopped, anthropic.StopReasonStopSequence, 1},
		"limit":    {short, anthropic.StopReasonMaxTokens, 1},
		"refusal":  {ask1(anthropic.ModelClaudeSonnet5_5, WordRefuse), anthropic.StopReasonRefusal, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t)
			whole, err := c.Messages.New(t.Context(), test.params)
			if err != nil {
				t.Fatal(err)
			}
			m := folded(t, c, test.params)
			if whole.StopReason != test.reason || m.StopReason != test.reason || len(whole.Content) != test.blocks || len(m.Content) != test.blocks {
				t.Fatalf("whole %s with %d blocks, streamed %s with %d; want %s with %d",
					whole.StopReason, len(whole.Content), m.StopReason, len(m.Content), test.reason, test.blocks)
			}
			for i, block := range whole.Content {
				other := m.Content[i]
				if block.Type != other.Type || block.Text != other.Text || block.Thinking != other.Thinking || block.Signature != other.Signature ||
					block.Name != other.Name || string(block.Input) != string(other.Input) {
					t.Errorf("block %d: whole %s, streamed %s", i, block.RawJSON(), other.RawJSON())
				}
			}
			if whole.Usage.InputTokens == 0 || whole.Usage.InputTokens != m.Usage.InputTokens || whole.Usage.OutputTokens != m.Usage.OutputTokens ||
				whole.Usage.OutputTokensDetails.ThinkingTokens > whole.Usage.OutputTokens {
				t.Errorf("usage: whole %s, streamed %+v", whole.Usage.RawJSON(), m.Usage)
			}
			if whole.StopSequence != m.StopSequence || whole.StopDetails.Type != m.StopDetails.Type {
				t.Errorf("stop details differ: %s and %+v", whole.RawJSON(), m)
			}
		})
	}
}

// TestSDKRunsAToolLoop sends the stand-in's own answer back with results.
func TestSDKRunsAToolLoop(t *testing.T) {
	c := client(t)
	params := ask1(anthropic.ModelClaudeSonnet5_5, "Use get_weather for Oslo and Rome")
	params.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name:        "get_weather",
		InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}}, Required: []string{"city"}},
	}}}
	first, err := c.Messages.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	var results []anthropic.ContentBlockParamUnion
	for _, block := range first.Content {
		if block.Type == "tool_use" {
			results = append(results, anthropic.NewToolResultBlock(block.ID, "9 degrees", false))
		}
	}
	params.Messages = append(params.Messages, first.ToParam(), anthropic.NewUserMessage(results...))
	second, err := c.Messages.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if got := second.Content[len(second.Content)-1].Text; got != "The tool says: 9 degrees; 9 degrees." {
		t.Errorf("final answer %q", got)
	}
}

func TestSDKReadsErrors(t *testing.T) {
	c := client(t)
	_, err := c.Messages.New(t.Context(), ask1("gpt-9", "Hi"))
	var api *anthropic.Error
	if !errors.As(err, &api) || api.StatusCode != 404 || !strings.HasPrefix(api.RequestID, "req_") {
		t.Errorf("unknown model: %v", err)
	}
}

func TestSDKListsModels(t *testing.T) {
	c := client(t)
	pages := c.Models.ListAutoPaging(context.Background(), anthropic.ModelListParams{Limit: anthropic.Int(5)})
	n := 0
	for pages.Next() {
		got := pages.Current()
		types := got.Capabilities.Thinking.Types
		if got.ID != models[n].id || got.MaxTokens != int64(models[n].maxTokens) || got.CreatedAt.IsZero() ||
			got.Capabilities.Effort.Supported != (len(models[n].effort) > 0) ||
			types.Enabled.Supported != slices.Contains(models[n].thinking, "enabled") ||
			types.Adaptive.Supported != slices.Contains(models[n].thinking, "adaptive") {
			t.Errorf("model %d: %s", n, got.RawJSON())
		}
		n++
	}
	if err := pages.Err(); err != nil || n != len(models) {
		t.Errorf("%d models, %v", n, err)
	}
}
