package translate

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"

	"ezat.io/chat-completions/translate/internal/jsontext"
	"github.com/tidwall/gjson"
)

// agentTurn is a coding agent's request of about 104 KB: 60 messages with calls
// and results full of escapes, and 20 tools.
func agentTurn() []byte {
	var b strings.Builder
	b.WriteString(`{"model":"anthropic/claude-sonnet-5-5","max_completion_tokens":8192,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"`)
	b.WriteString(strings.Repeat(`You are a careful engineer.\nUse the tools; say \"done\" when the work is done.\n`, 40))
	b.WriteString(`"},{"role":"user","content":"Fix the failing test in pkg/store."}`)
	for i := range 29 {
		id := "call_" + strconv.Itoa(1000+i)
		b.WriteString(`,{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"pkg/store/store_` + strconv.Itoa(i) + `.go\",\"limit\":200}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"`)
		b.WriteString(strings.Repeat(`func (s *Store) Get(key string) (string, error) {\n\tif v, ok := s.m[\"a\"]; ok {\n\t\treturn v, nil\n\t}\n\treturn \"\", ErrNone\n}\n\n`, 18))
		b.WriteString(`"}`)
	}
	b.WriteString(`],"tools":[`)
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"type":"function","function":{"name":"tool_` + strconv.Itoa(i) + `","description":"Reads a part of a file and gives it back with line numbers.","parameters":{"type":"object","properties":{"path":{"type":"string","description":"The file"},"offset":{"type":"integer","minimum":0},"limit":{"type":"integer"},"mode":{"enum":["text","hex"]}},"required":["path"],"additionalProperties":false}}}`)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func smallChat() []byte {
	return []byte(`{"model":"anthropic/claude-sonnet-5-5","max_tokens":256,"temperature":0.2,"messages":[{"role":"system","content":"` + strings.Repeat("Answer briefly and plainly. ", 12) + `"},{"role":"user","content":"` + strings.Repeat("What is a prompt cache, and when does it pay? ", 10) + `"}]}`)
}

func imageChat(size int) []byte {
	picture := make([]byte, size/4*3)
	copy(picture, "\x89PNG\r\n\x1a\n")
	for i := 8; i < len(picture); i++ {
		picture[i] = byte(i * 2654435761 >> 13)
	}
	return []byte(`{"model":"anthropic/claude-sonnet-5-5","messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + base64.StdEncoding.EncodeToString(picture) + `"}}]}]}`)
}

// BenchmarkRequest is parse, decide and write; beside it gjson's validation of
// the same bytes, the yardstick of the budgets.
func BenchmarkRequest(b *testing.B) {
	for _, work := range []struct {
		name string
		body []byte
	}{{"small", smallChat()}, {"agent", agentTurn()}, {"image24MB", imageChat(24 << 20)}} {
		padded := append(work.body, make([]byte, jsontext.Slack)...)[:len(work.body)]
		env := plainEnv()
		env.AutoCache = true
		b.Run(work.name+"/translate", func(b *testing.B) {
			b.SetBytes(int64(len(padded)))
			b.ReportAllocs()
			var parser Parser
			for b.Loop() {
				r, refused := parser.Parse(padded)
				if refused != nil {
					b.Fatal(refused)
				}
				p, refused := Decide(r, env)
				if refused != nil {
					b.Fatal(refused)
				}
				p.Write(func([]byte) {})
			}
		})
		b.Run(work.name+"/gjson", func(b *testing.B) {
			b.SetBytes(int64(len(padded)))
			for b.Loop() {
				if !gjson.ValidBytes(padded) {
					b.Fatal("not valid")
				}
			}
		})
		b.Run(work.name+"/copy", func(b *testing.B) {
			b.SetBytes(int64(len(padded)))
			to := make([]byte, len(padded))
			for b.Loop() {
				copy(to, padded)
			}
		})
	}
}
