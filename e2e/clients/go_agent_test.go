package clients_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
)

var goWeather = openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
	Name: "get_weather", Description: openai.String("Current weather"), Strict: openai.Bool(true),
	Parameters: shared.FunctionParameters{
		"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}},
		"required": []string{"city"}, "additionalProperties": false,
	},
})

// goAsk asks whole or as a stream and returns the message, the reason of its
// end and the usage.
type goAsk func(*testing.T, openai.ChatCompletionNewParams) (openai.ChatCompletionMessage, string, openai.CompletionUsage)

func (c goCheck) ways() map[string]goAsk {
	return map[string]goAsk{
		"whole": func(t *testing.T, params openai.ChatCompletionNewParams) (openai.ChatCompletionMessage, string, openai.CompletionUsage) {
			got := c.whole(t, params)
			return got.Choices[0].Message, got.Choices[0].FinishReason, got.Usage
		},
		"streamed": func(t *testing.T, params openai.ChatCompletionNewParams) (openai.ChatCompletionMessage, string, openai.CompletionUsage) {
			params.StreamOptions.IncludeUsage = openai.Bool(true)
			got, usage := c.streamed(t, params)
			return got.Choices[0].Message, got.Choices[0].FinishReason, *usage
		},
	}
}

// goTurn asks for the weather of two cities, answers both calls and returns
// the conversation with the last answer. used sees each answer's usage.
func goTurn(t *testing.T, ask goAsk, params openai.ChatCompletionNewParams, result string, used func(openai.CompletionUsage)) []openai.ChatCompletionMessageParamUnion {
	t.Helper()
	message, reason, usage := ask(t, params)
	used(usage)
	if reason != "tool_calls" || len(message.ToolCalls) != 2 || message.ToolCalls[0].ID == message.ToolCalls[1].ID {
		t.Fatalf("%s with %v", reason, message.ToolCalls)
	}
	params.Messages = append(params.Messages, message.ToParam())
	for i, city := range []string{"Oslo", "Rome"} {
		call := message.ToolCalls[i]
		var input struct{ City string }
		if err := json.Unmarshal([]byte(call.Function.Arguments), &input); err != nil || input.City != city || call.Function.Name != "get_weather" {
			t.Fatalf("call %d is %s(%s), %v", i, call.Function.Name, call.Function.Arguments, err)
		}
		params.Messages = append(params.Messages, openai.ToolMessage(result, call.ID))
	}
	message, reason, usage = ask(t, params)
	used(usage)
	if want := "The tool says: " + result + "; " + result + "."; reason != "stop" || message.Content != want || len(message.ToolCalls) > 0 {
		t.Fatalf("%s with %q, want %q", reason, message.Content, want)
	}
	return append(params.Messages, message.ToParam())
}

func goToolLoop(t *testing.T, c goCheck) {
	for name, way := range c.ways() {
		for _, model := range []string{plain, thinker} {
			t.Run(name+" "+model, func(t *testing.T) {
				params := ask(model, "Use get_weather for Oslo and Rome")
				params.Tools = []openai.ChatCompletionToolUnionParam{goWeather}
				goTurn(t, way, params, "9 degrees", func(openai.CompletionUsage) {})
			})
		}
	}
}

func goStructured(t *testing.T, c goCheck) {
	for name, way := range c.ways() {
		params := ask(thinker, "Lima")
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "place", Strict: openai.Bool(true),
			Schema: map[string]any{
				"type": "object", "additionalProperties": false, "required": []string{"city", "inhabitants"},
				"properties": map[string]any{"city": map[string]any{"type": "string"}, "inhabitants": map[string]any{"type": "integer"}},
			},
		}}
		message, reason, _ := way(t, params)
		var place struct {
			City        string
			Inhabitants int
		}
		if err := json.Unmarshal([]byte(message.Content), &place); err != nil || reason != "stop" || place.City != "Lima" || place.Inhabitants != 1 {
			t.Errorf("%s: %s with %q, %v", name, reason, message.Content, err)
		}
	}
}

// goFortyTurns holds one long conversation: what was sent once is read from
// the cache the next time.
func goFortyTurns(t *testing.T, c goCheck) {
	for name, way := range c.ways() {
		t.Run(name, func(t *testing.T) {
			params := openai.ChatCompletionNewParams{
				Model: thinker, Tools: []openai.ChatCompletionToolUnionParam{goWeather}, ReasoningEffort: shared.ReasoningEffortMedium,
				Messages: []openai.ChatCompletionMessageParamUnion{
					openai.SystemMessage("Go, " + name + ". " + strings.Repeat("You are a careful agent. ", 120)),
				},
			}
			sent := int64(0)
			for turn := range 40 {
				text := openai.TextContentPart(fmt.Sprintf("Turn %d: use get_weather for Oslo and Rome", turn))
				parts := []openai.ChatCompletionContentPartUnionParam{text}
				if turn%4 == 0 {
					parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: pngURL(t, turn+1)}))
				}
				params.Messages = append(params.Messages, openai.UserMessage(parts))
				params.Messages = goTurn(t, way, params, fmt.Sprintf("%d degrees", turn), func(u openai.CompletionUsage) {
					if u.PromptTokensDetails.CachedTokens != sent || u.PromptTokensDetails.CacheWriteTokens != u.PromptTokens-sent {
						t.Errorf("turn %d: %s after %d tokens", turn, u.RawJSON(), sent)
					}
					sent = u.PromptTokens
				})
			}
		})
	}
}

// pngURL is a black image of one row as a data URL.
func pngURL(t *testing.T, width int) string {
	t.Helper()
	var data strings.Builder
	data.WriteString("data:image/png;base64,")
	encoder := base64.NewEncoder(base64.StdEncoding, &data)
	if err := png.Encode(encoder, image.NewGray(image.Rect(0, 0, width, 1))); err != nil {
		t.Fatal(err)
	}
	if err := encoder.Close(); err != nil {
		t.Fatal(err)
	}
	return data.String()
}
