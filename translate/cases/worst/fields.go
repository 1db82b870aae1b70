package worst

import "strings"

const parts = start + `{"role":"user","content":[`

// media are pictures and files.
func media() []Body {
	const picture = `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0K`
	return append(together(
		series{name: "pictures", head: parts, tail: `]}` + end, values: 4, element: plain(picture, `"}}`)},
		series{name: "pictures of odd spelling", head: parts, tail: `]}` + end, values: 4,
			element: plain(`{"type":"image_url","image_url":{"url":"DATA:Image/PNG;a=b;BASE64,iVBORw0K`, `"}}`)},
		series{name: "PDFs", head: parts, tail: `]}` + end, values: 4,
			element: plain(`{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERi0x`, `"}}`)},
		series{name: "image URLs", head: parts, tail: `]}` + end, values: 4, most: 20,
			element: plain(`{"type":"image_url","image_url":{"url":"https://example.com/`, `"}}`)},
	),
		honest(one("one picture", parts+picture, "ABCD", `"}}]}`+end)),
		honest(one("one PDF", parts+`{"type":"file","file":{"file_data":"data:application/pdf;base64,`, "JVBE", `"}}]}`+end)),
		one("white space in base64", parts+picture, `A\nBCD `, `"}}]}`+end),
		one("nothing but white space in base64", parts+picture, `\n`, `"}}]}`+end),
		one("base64 spelled as escapes", parts+picture, `\u0041`, `"}}]}`+end),
		one("base64 that breaks off", parts+picture, `ABCD`, `=A"}}]}`+end),
		one("the head of a data URL", parts+`{"type":"image_url","image_url":{"url":"data:`, `a;`, `,AAAA"}}]}`+end),
		one("an image URL", parts+`{"type":"image_url","image_url":{"url":"https://example.com/`, `a%20/../`, `"}}]}`+end),
	)
}

// schemas pass through as they are.
func schemas() []Body {
	const (
		tool   = start + question + `],"tools":[{"type":"function","function":{"name":"f","parameters":{"a":`
		tail   = `}}}]}`
		format = start + question + `],"response_format":{"type":"json_schema","json_schema":{"schema":{"a":`
	)
	deep := strings.Repeat("[", 480) + strings.Repeat("]", 480)
	return append(together(
		series{name: "numbers in a schema", head: tool + `[`, tail: `]` + tail, values: 1, element: plain(`1`, ``)},
		series{name: "empty arrays in a schema", head: tool + `[`, tail: `]` + tail, values: 1, element: plain(`[]`, ``)},
		series{name: "keys in a schema", head: tool + `{`, tail: `}` + tail, values: 1, element: plain(`"a`, `":{}`)},
		series{name: "halves in a schema", head: tool + `[`, tail: `]` + tail, values: 1, element: plain(`"\ud83d`, `"`)},
		series{name: "deep arrays in a schema", head: tool + `[`, tail: `]` + tail, values: 480, element: plain(deep, ``)},
		series{name: "strings in a format", head: format + `[`, tail: `]}}}}`, values: 1, element: plain(`"a`, `"`)},
	),
		one("a number of many digits", tool, `1`, tail),
		one("a number with a long exponent", tool+`1e`, `1`, tail),
		one("white space in a schema", tool, " ", `1`+tail),
		one("line ends in a schema", tool, "\n\t", `1`+tail),
		one("a schema full of escapes", tool+`"`, `\"\u0061`, `"`+tail),
		one("arrays that never end", tool, `[`, ``),
	)
}

// toolLists have many tools.
func toolLists() []Body {
	const tools = start + question + `],"tools":[`
	named := func(name string) string {
		return `],"tool_choice":{"type":"function","function":{"name":"` + name + `"}}}`
	}
	tool := func(name string) func([]byte, int, []byte) []byte {
		return func(dst []byte, i int, pad []byte) []byte {
			dst = append(number(dst, `{"type":"function","function":{"name":"`+name, i, ""), pad...)
			return append(dst, `"}}`...)
		}
	}
	const long = 4096
	return append(together(
		series{name: "tools", head: tools, tail: `]}`, values: 4, element: tool("f")},
		series{name: "tools with spelled names", head: tools, tail: `]}`, values: 4, element: tool(`\u0066`)},
		series{name: "marked tools", head: tools, tail: `]}`, values: 6,
			element: plain(`{"cache_control":{"type":"ephemeral"},"type":"function","function":{"name":"f`, `"}}`)},
		series{name: "tools with parameters of keys", head: tools, tail: `]}`, values: 12,
			element: plain(`{"type":"function","function":{"name":"f","parameters":{"\u0061":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":"`, `"}}}`)},
		series{name: "a named tool behind its like", head: tools, tail: `,{"type":"function","function":{"name":"` + strings.Repeat("a", long) + `"}}` + named(strings.Repeat("a", long)),
			values: 4, element: tool(strings.Repeat("a", long-9))},
		series{name: "a named tool behind spelled ones", head: tools, tail: `,{"type":"function","function":{"name":"aaaa"}}` + named("aaaa"),
			values: 4, element: tool(`\u0061aa`)},
	), honest(Body{Name: "many tools with schemas", Make: func(size int) []byte {
		s := series{head: tools, tail: `]}`, values: 14, element: plain(`{"type":"function","function":{"name":"read_file","description":"`+
			strings.Repeat("Reads a part of a file and gives it back with line numbers. ", 30)+
			`","parameters":{"type":"object","properties":{"path":{"type":"string","description":"The file"},"offset":{"type":"integer"}},"required":["path"]}}}`, ``)}
		return s.make(size, s.limit(), false)
	}}))
}

// fields are long values of single fields.
func fields() []Body {
	tail := "," + start[1:] + question + end
	list := together(
		series{name: "stop strings", head: `{"stop":[`, tail: `]` + tail, values: 1, element: plain(`"a`, `"`)},
		series{name: "empty stop strings", head: `{"stop":[`, tail: `]` + tail, values: 1, element: plain(`"`, `"`)},
		series{name: "spelled stop strings", head: `{"stop":[`, tail: `]` + tail, values: 1, element: plain(`"\u2003a`, `"`)},
	)
	for _, f := range []struct{ name, before, text, after string }{
		{"a stop string of spaces", `{"stop":"`, `\u2003`, `"`},
		{"an ignored string", `{"user":"`, `a`, `"`},
		{"an ignored string of escapes", `{"user":"`, `\u0061`, `"`},
		{"a key for the prompt cache", `{"prompt_cache_key":"`, `a`, `"`},
		{"a key for the prompt cache, of escapes", `{"prompt_cache_key":"`, `\u00e9`, `"`},
		{"an effort", `{"reasoning_effort":"`, `a`, `"`},
		{"a limit of many digits", `{"max_tokens":`, `1`, ``},
		{"a limit with many zeros", `{"max_tokens":1.`, `0`, ``},
		{"a temperature of many digits", `{"temperature":0.`, `1`, ``},
		{"a top_p of many digits", `{"top_p":1`, `0`, ``},
		{"an n of many digits", `{"n":1.`, `0`, ``},
		{"white space in front", `{`, " \n", `"seed":1`},
		{"modalities", `{"modalities":["`, `text`, `"]`},
	} {
		list = append(list, one(f.name, f.before, f.text, f.after+tail))
	}
	return append(list,
		one("a model's name", `{"model":"`, `a`, `","messages":[`+question+end),
		one("a model's name of escapes", `{"model":"`, `\u0061`, `","messages":[`+question+end),
		one("a model's name of quotes", `{"model":"`, `\"`, `","messages":[`+question+end),
		one("a role", start+`{"role":"`, `a`, `","content":"a"}`+end),
		one("a part's type", parts+`{"type":"`, `a`, `","text":"a"}]}`+end),
		one("a result's id", start+question+`,{"role":"tool","content":"","tool_call_id":"`, `\u0061`, `"}`+end),
		one("a mark's time", parts+`{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"`, `\ud83d`, `"}}]}`+end),
		one("a mark's type", parts+`{"type":"text","text":"a","cache_control":{"type":"`, `a`, `"}}]}`+end),
		one("a choice", start+question+`],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"`, `a`, `"}`),
	)
}

// refused bodies have their fault where all work before it was in vain.
func refused() []Body {
	text := strings.Repeat(`\n`, 8)
	return append(together(
		series{name: "messages with a fault in the last", head: start, tail: `,{"role":"x"}` + end, values: 3, element: plain(`{"role":"user","content":"a`, `"}`)},
		series{name: "messages with a fault in the tools", head: start, tail: `],"tools":[{}]}`, values: 3, element: plain(`{"role":"user","content":"a`, `"}`)},
	),
		one("text and bytes that are not UTF-8", start+`{"role":"user","content":"`, text, "\xff\"}"+end),
		one("text that breaks off", start+`{"role":"user","content":"`, text, ``),
		one("text and a second value", start+`{"role":"user","content":"`, text, `"}`+end+` {}`),
		one("text and a broken escape", start+`{"role":"user","content":"`, text, `\u12"}`+end),
		one("text in a string", `"`, text, `"`),
		one("white space alone", ``, " ", ``),
		one("white space behind", start+question+end, "\n", ``),
	)
}
