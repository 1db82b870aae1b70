// Package work makes what the benchmarks work on: the same bytes every time.
package work

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// Model is the model that every request asks for.
const Model = "anthropic/claude-sonnet-5-5"

const (
	model     = `"model":"` + Model + `"`
	firstLine = `{"role":"user","content":"Fix the failing test in pkg/store."}`
)

// SmallChat is a request of about 1 KB: a system prompt and a question.
func SmallChat() []byte {
	return []byte(`{` + model + `,"max_tokens":256,"temperature":0.2,"messages":[{"role":"system","content":"` +
		strings.Repeat("Answer briefly and plainly. ", 12) + `"},{"role":"user","content":"` +
		strings.Repeat("What is a prompt cache, and when does it pay? ", 10) + `"}]}`)
}

// AgentTurn is a coding agent's request of about 104 KB: 60 messages with calls
// and results full of escapes, and 20 tools.
func AgentTurn() []byte {
	const (
		system = `You are a careful engineer.\nUse the tools; say \"done\" when the work is done.\n`
		file   = `func (s *Store) Get(key string) (string, error) {\n\tif v, ok := s.m[\"a\"]; ok {\n\t\treturn v, nil\n\t}\n\treturn \"\", ErrNone\n}\n\n`
	)
	var b strings.Builder
	b.WriteString(`{` + model + `,"max_completion_tokens":8192,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"`)
	b.WriteString(strings.Repeat(system, 40))
	b.WriteString(`"},` + firstLine)
	for i := range 29 {
		b.WriteByte(',')
		b.WriteString(call(i))
		b.WriteString(result(i, strings.Repeat(file, 18)))
	}
	b.WriteString(`],"tools":[`)
	b.WriteString(list(20, tool))
	b.WriteString(`]}`)
	return []byte(b.String())
}

// call is an assistant's message with one call, and a comma behind it.
func call(i int) string {
	n := strconv.Itoa(i)
	return `{"role":"assistant","content":null,"tool_calls":[{"id":"call_` + n + `","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"pkg/store/store_` + n + `.go\",\"limit\":200}"}}]},`
}

func result(i int, text string) string {
	return `{"role":"tool","tool_call_id":"call_` + strconv.Itoa(i) + `","content":"` + text + `"}`
}

func tool(i int) string {
	return `{"type":"function","function":{"name":"tool_` + strconv.Itoa(i) + `","description":"Reads a part of a file and gives it back with line numbers.",` +
		`"parameters":{"type":"object","properties":{"path":{"type":"string","description":"The file"},"offset":{"type":"integer","minimum":0},"limit":{"type":"integer"},` +
		`"mode":{"enum":["text","hex"]}},"required":["path"],"additionalProperties":false}}}`
}

// list joins n elements with commas.
func list(n int, element func(int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(element(i))
	}
	return b.String()
}

// Conversation is a long talk of about size bytes: questions, and answers of a
// few hundred bytes with escapes and with letters beyond ASCII.
func Conversation(size int) []byte {
	const answer = `Yes. First look at the log:\n\n    grep -n \"refused\" server.log\n\nThen check the naïve way: does the café’s proxy – the old one – answer at all? Usually it does, and then the cause lies further down. `
	pair := func(i int) string {
		return `{"role":"user","content":"And what about case ` + strconv.Itoa(i) + `, is it the same there?"},{"role":"assistant","content":"` + strings.Repeat(answer, 2+i%3) + `"}`
	}
	n := max(1, size*4/(len(pair(0))+2*len(pair(1))+len(pair(2))))
	return []byte(`{` + model + `,"messages":[` + list(n, pair) + `,{"role":"user","content":"Thanks. Sum it up."}]}`)
}

// Image is a chat with one picture of size bytes of base64, in a data URL.
func Image(size int) []byte {
	picture := make([]byte, size/4*3)
	copy(picture, "\x89PNG\r\n\x1a\n")
	for i := 8; i < len(picture); i++ {
		picture[i] = byte(i * 2654435761 >> 13)
	}
	head := `{` + model + `,"messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`
	const tail = `"}}]}]}`
	b := make([]byte, 0, len(head)+size+len(tail))
	b = append(b, head...)
	b = base64.StdEncoding.AppendEncode(b, picture)
	return append(b, tail...)
}

// Text is one message of size bytes of plain text.
func Text(size int) []byte {
	const line = "All work and no play makes a dull benchmark, so here is some play. "
	return one(strings.Repeat(line, size/len(line)+1)[:size])
}

// Messages is a talk of n short messages.
func Messages(n int) []byte {
	return []byte(`{` + model + `,"messages":[` + list(n, func(i int) string {
		return `{"role":"` + [2]string{"user", "assistant"}[i%2] + `","content":"Line ` + strconv.Itoa(i) + ` of the talk."}`
	}) + `]}`)
}

// Calls is a talk with n calls, each with its result.
func Calls(n int) []byte {
	return []byte(`{` + model + `,"messages":[` + firstLine + `,` + list(n, func(i int) string { return call(i) + result(i, "ok") }) + `]}`)
}

// Tools is a question with n tools.
func Tools(n int) []byte {
	return []byte(`{` + model + `,"messages":[` + firstLine + `],"tools":[` + list(n, tool) + `]}`)
}

// Parts is one message of n tiny text parts.
func Parts(n int) []byte {
	return []byte(`{` + model + `,"messages":[{"role":"user","content":[` + list(n, func(int) string {
		return `{"type":"text","text":"a"}`
	}) + `]}]}`)
}

// Escapes is one message of size bytes that are nothing but escapes.
func Escapes(size int) []byte { return one(strings.Repeat(`\n`, size/2)) }

// Values is a question with one tool whose schema lists n numbers.
func Values(n int) []byte {
	return []byte(`{` + model + `,"messages":[` + firstLine + `],"tools":[{"type":"function","function":{"name":"pick","parameters":{"type":"object","enum":[` +
		list(n, func(int) string { return "1" }) + `]}}}]}`)
}

func one(text string) []byte {
	return []byte(`{` + model + `,"messages":[{"role":"user","content":"` + text + `"}]}`)
}
