package harness_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"

	"ezat.io/chat-completions/translate/cases"
)

// The low bits of FuzzLevels' how say what is done with the bodies; the others are the
// seed of all that is left to chance.
const (
	makeRequest  uint64 = 1 << iota // by the grammar, and not the bytes given
	makeAnswer                      // likewise
	spoilRequest                    // a few bytes of it are changed
	spoilAnswer                     // likewise
	eventStream                     // is what the answer calls itself
	failedAnswer                    // its status is not 200

	recipeBits = 6
)

// pictures are the URLs that a server has a picture for.
var (
	pictures    = []string{"https://img.test/1.png", "http://img.test/2.png"}
	onePixel, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
)

// recipe makes the exchange of one run.
func recipe(request, answer []byte, how uint64) *cases.Case {
	g := grammar{rand.New(rand.NewPCG(how>>recipeBits, 1))}
	if how&makeRequest != 0 {
		request = []byte(g.request())
	}
	if how&makeAnswer != 0 {
		answer = []byte(g.answer(how&eventStream != 0))
	}
	if how&spoilRequest != 0 {
		request = spoilBytes(request, g.Rand)
	}
	if how&spoilAnswer != 0 {
		answer = spoilBytes(answer, g.Rand)
	}
	header := cases.Header{{"authorization", "Bearer " + cases.Key}, {"content-type", "application/json"}}
	c := &cases.Case{
		Name:    "fuzz",
		Request: cases.Request{Method: "POST", Path: "/openai/v1/chat/completions", Header: header, Body: request},
	}
	for _, url := range pictures {
		path := url[strings.LastIndex(url, "/"):]
		want := cases.Wanted{Method: "GET", Path: path, Must: cases.Header{{"authority", "img.test"}}}
		c.Downloads = append(c.Downloads, cases.Call{Want: want, Answer: cases.Answer{Status: 200, Header: cases.Header{{"content-type", "image/png"}}, Body: onePixel}})
	}
	up := cases.Answer{Status: 200, Body: answer, Header: cases.Header{{"content-type", "application/json"}, {"request-id", cases.RequestID}}}
	if how&eventStream != 0 {
		up.Header[0][1] = "text/event-stream; charset=utf-8"
	}
	if how&failedAnswer != 0 {
		up.Status = []int{400, 401, 403, 404, 413, 422, 429, 500, 503, 504, 529}[g.IntN(11)]
	}
	c.Calls = []cases.Call{{Answer: up}}
	return c
}

// grammar writes requests and answers of good pieces, with a bad one now and then.
type grammar struct{ *rand.Rand }

// of picks one; the last of the list is a bad one, and seldom.
func (g grammar) of(list ...string) string {
	if g.IntN(150) == 0 {
		return list[len(list)-1]
	}
	return list[g.IntN(max(1, len(list)-1))]
}

// some are up to most pieces, joined by commas.
func (g grammar) some(most int, piece func() string) string {
	var all []string
	for range g.IntN(most + 1) {
		all = append(all, piece())
	}
	return strings.Join(all, ",")
}

func (g grammar) object(fields ...string) string {
	var kept []string
	for _, f := range fields {
		if f != "" {
			kept = append(kept, f)
		}
	}
	if g.IntN(8) == 0 { // a JSON object has no order
		g.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
	}
	return "{" + strings.Join(kept, []string{",", ",", ",", " ,\n\t"}[g.IntN(4)]) + "}"
}

// maybe is the field in one of n cases.
func (g grammar) maybe(n int, field string) string {
	if g.IntN(n) != 0 {
		return ""
	}
	return field
}

func (g grammar) text() string {
	return g.of(`"hello"`, `"world"`, `"\u00e9\ud83d\ude00"`, `"\ud83d"`, `"\ude00 x"`, `"quo\"te \\ \/ \b\f\r"`, `"é阴😀\u2028"`, `"ends in white space  "`, `"short"`, []string{`""`, `" \n\t"`, `"x"`}[g.IntN(3)],
		`"`+strings.Repeat("long ", g.IntN(2000))+`"`, "\"\\u00\"")
}

func (g grammar) mark() string {
	return g.maybe(8, `"cache_control":`+g.of(`{"type":"ephemeral"}`, `{"type":"ephemeral","ttl":"1h"}`, `null`, `true`))
}

func (g grammar) request() string {
	return g.object(
		`"model":`+g.of(`"anthropic/claude-sonnet-5-5"`, `"claude-haiku-5-5"`, `"anthropic/claude-opus-5-5-20260101"`, `"other\u002fmodel"`, `7`),
		`"messages":[`+g.messages()+`]`,
		g.maybe(2, `"stream":`+g.of("true", "true", "false", "null", `"true"`)),
		g.maybe(4, `"stream_options":`+g.of(`{"include_usage":true}`, `{"include_usage":false}`, `{}`, `[]`)),
		g.maybe(3, `"tools":[`+g.some(3, g.tool)+`]`),
		g.maybe(6, `"tool_choice":`+g.of(`"auto"`, `"none"`, `"required"`, `{"type":"function","function":{"name":"f"}}`, `"any"`)),
		g.maybe(6, `"parallel_tool_calls":`+g.of("true", "false", "0")),
		g.maybe(4, `"max_tokens":`+g.of("64", "64.0", "1e2", "0", "64.5")),
		g.maybe(6, `"temperature":`+g.of("0", "0.70", "1.5", "2", "3")),
		g.maybe(6, `"stop":`+g.of(`"x"`, `["a","b"]`, `[""]`, `null`, `[" "]`)),
		g.maybe(8, `"reasoning_effort":`+g.of(`"low"`, `"high"`, `"none"`, `"minimal"`, `1`)),
		g.maybe(8, `"response_format":`+g.of(`{"type":"text"}`, `{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}}`, `{"type":"json_object"}`, `{}`)),
		g.maybe(8, `"prompt_cache_key":`+g.of(`"k"`, `"ä b"`, `""`, `1`)),
		g.maybe(8, `"seed":`+g.of("1", "-1e400", "x")),
		g.maybe(20, g.of(`"n":1`, `"logprobs":false`, `"user":"u"`, `"store":true`, `"functions":[]`)),
	)
}

func (g grammar) messages() string {
	var all []string
	id := 0
	for range 1 + g.IntN(5) {
		switch g.IntN(6) {
		case 0:
			all = append(all, g.object(`"role":`+g.of(`"system"`, `"developer"`, `"tool"`), `"content":`+g.content()))
		case 1, 2, 3:
			all = append(all, g.object(`"role":"user"`, `"content":`+g.content(), g.maybe(8, `"name":"n"`)))
		case 4:
			all = append(all, g.object(`"role":"assistant"`, `"content":`+g.of(g.text(), "null", `[{"type":"refusal","refusal":"no"}]`, "5")))
		default:
			var calls, results []string
			for range 1 + g.IntN(3) {
				id++
				name := g.callID(id)
				calls = append(calls, g.object(`"id":`+name, `"type":"function"`, `"function":`+g.object(`"name":"f"`, `"arguments":`+g.of(`"{}"`, `""`, `"{\"a\": 1.0}"`, `"[1]"`))))
				results = append(results, g.object(`"role":"tool"`, `"tool_call_id":`+name, `"content":`+g.content()))
			}
			all = append(all, g.object(`"role":"assistant"`, g.maybe(2, `"content":`+g.text()), `"tool_calls":[`+strings.Join(calls, ",")+`]`))
			if g.IntN(20) > 0 {
				all = append(all, results...)
			}
		}
	}
	return strings.Join(all, ",")
}

// callID is an id, good or foreign, sometimes one that has been there before.
func (g grammar) callID(n int) string {
	return g.of(fmt.Sprintf(`"call_%d"`, n), fmt.Sprintf(`"call.%d"`, n), `"call_1"`, `"ezatid-a_21"`, `"a!"`, `"ezatid-`+strings.Repeat("_", g.IntN(70))+`"`, `"`+strings.Repeat("i", g.IntN(300))+`"`, `""`)
}

func (g grammar) content() string {
	if g.IntN(2) == 0 {
		return g.text()
	}
	return "[" + g.some(4, g.part) + "]"
}

func (g grammar) part() string {
	data := base64.StdEncoding.EncodeToString(onePixel)
	return g.of(
		g.object(`"type":"text"`, `"text":`+g.text(), g.mark()),
		g.object(`"type":"text"`, `"text":`+g.text(), g.mark()),
		g.object(`"type":"image_url"`, `"image_url":`+g.object(`"url":"data:image/`+g.of("png", "jpg", "webp", "gif", "bmp")+`;base64,`+g.of(data, data[:40]+`\n`+data[40:], "!")+`"`, g.maybe(3, `"detail":"low"`)), g.mark()),
		g.object(`"type":"image_url"`, `"image_url":`+g.object(`"url":"`+g.of(pictures[0], pictures[1], "https://img.test/none", "ftp://img.test/")+`"`)),
		g.object(`"type":"file"`, `"file":`+g.object(`"file_data":"data:application/pdf;base64,JVBERi0="`, g.maybe(2, `"filename":"a.pdf"`))),
		`{"type":"input_audio"}`)
}

func (g grammar) tool() string {
	return g.object(`"type":"function"`, `"function":`+g.object(`"name":`+g.of(`"f"`, `"g"`, `null`), g.maybe(2, `"description":`+g.text()),
		g.maybe(2, `"parameters":`+g.of(`{"type":"object","properties":{"b":{},"a":{"minimum":1e0}}}`, `{}`, `null`, `[]`)), g.maybe(4, `"strict":true`)), g.mark())
}

const usageFields = `"usage":{"input_tokens":3,"cache_read_input_tokens":2,"output_tokens":%d}`

func (g grammar) answer(events bool) string {
	if events {
		return g.events()
	}
	if g.IntN(6) == 0 {
		return g.of(`{"type":"error","error":{"type":"overloaded_error","message":`+g.text()+`}}`, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`, `<html>`)
	}
	return g.object(`"id":"msg_1"`, `"type":"message"`, `"role":"assistant"`, `"model":"m"`, `"content":[`+g.some(4, g.block)+`]`,
		`"stop_reason":`+g.stopReason(), fmt.Sprintf(usageFields, g.IntN(100)))
}

func (g grammar) stopReason() string {
	return g.of(`"end_turn"`, `"tool_use"`, `"max_tokens"`, `"stop_sequence"`, `"refusal"`, `"pause_turn"`, `null`, `[]`)
}

func (g grammar) block() string {
	return g.of(`{"type":"text","text":`+g.text()+`}`, `{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":[1,"\u00e9"]}}`,
		`{"type":"thinking","thinking":"hm","signature":"s"}`, `{"type":"future","x":{}}`, `{"type":"text"}`)
}

// events is a stream in the right order, with pings anywhere and now and then an event
// that is missing, twice there, or wrong.
func (g grammar) events() string {
	all := []string{`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,` + fmt.Sprintf(usageFields, 1) + `}}`}
	for index := range g.IntN(4) {
		start, delta := `{"type":"text","text":""}`, `{"type":"text_delta","text":%s}`
		switch g.IntN(4) {
		case 0:
			start, delta = fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"f","input":%s}`, index, g.of("{}", "{}", `{"a":1}`, "7")), `{"type":"input_json_delta","partial_json":%s}`
		case 1:
			start, delta = `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":%s}`
		}
		all = append(all, fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, start))
		for range g.IntN(5) {
			all = append(all, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":`+delta+`}`, index, g.text()))
		}
		all = append(all, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
	}
	all = append(all, `{"type":"message_delta","delta":{"stop_reason":`+g.stopReason()+`},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`)
	var out strings.Builder
	for _, event := range all {
		if g.IntN(12) == 0 {
			out.WriteString(g.of("event: ping\ndata: {\"type\":\"ping\"}\n\n", ": comment\n\n", "\n", "data: {\"type\":\"future\"}\n\n", "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", "data: {\n\n"))
		}
		for range []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2}[g.IntN(20)] {
			out.WriteString(g.of("event: x\ndata: ", "data:", "data: ", "id: 7\ndata: ", "data\n") + event + g.of("\n\n", "\r\n\r\n", "\n\n", "\r\r", "\n"))
		}
	}
	return out.String()
}
