package worst

import (
	"bytes"
	"strconv"
	"strings"
)

// together joins the forms of several series.
func together(list ...series) []Body {
	var all []Body
	for _, s := range list {
		all = append(all, s.bodies()...)
	}
	return all
}

// number appends before, the number i, and after.
func number(dst []byte, before string, i int, after string) []byte {
	dst = append(dst, before...)
	dst = strconv.AppendInt(dst, int64(i), 10)
	return append(dst, after...)
}

// conversations have many messages or parts.
func conversations() []Body {
	all := together(
		series{name: "messages of two roles", head: start, tail: end, values: 3, element: func(dst []byte, i int, pad []byte) []byte {
			dst = append(dst, `{"role":"`...)
			dst = append(dst, [2]string{"user", "assistant"}[i%2]...)
			dst = append(dst, `","content":"a`...)
			return append(append(dst, pad...), `"}`...)
		}},
		series{name: "messages of one role", head: start, tail: end, values: 3, element: plain(`{"role":"user","content":"a`, `"}`)},
		series{name: "messages of the assistant", head: start + question + ",", tail: end, values: 3, element: plain(`{"role":"assistant","content":"a`, ` "}`)},
		series{name: "empty messages of the assistant", head: start + question + ",", tail: end, values: 3, element: plain(`{"content":"","role":"assistant`, `"}`)},
		series{name: "system messages", head: start, tail: "," + question + end, values: 3, element: plain(`{"role":"system","content":"a`, `"}`)},
		series{name: "text parts", head: start + `{"role":"user","content":[`, tail: `]}` + end, values: 3, element: plain(`{"type":"text","text":"a`, `"}`)},
		series{name: "text parts of a half", head: start + `{"role":"user","content":[`, tail: `]}` + end, values: 3, element: plain(`{"type":"text","text":"\ud83d`, `"}`)},
		series{name: "blank parts", head: start + `{"role":"user","content":[`, tail: `,{"type":"text","text":"a"}]}` + end, values: 3,
			element: func(dst []byte, _ int, pad []byte) []byte {
				dst = append(dst, `{"type":"text","text":" `...)
				dst = append(dst, bytes.ReplaceAll(pad, []byte("x"), []byte(" "))...)
				return append(dst, `"}`...)
			}},
		series{name: "marked parts", head: start + `{"role":"user","content":[`, tail: `]}` + end, values: 5,
			element: plain(`{"cache_control":{"type":"ephemeral"},"type":"text","text":"a`, `"}`)},
		series{name: "refusals", head: start + question + `,{"role":"assistant","content":[`, tail: `]}` + end, values: 3, element: plain(`{"type":"refusal","refusal":"a`, `"}`)},
		series{name: "parts with spelled types", head: start + `{"role":"user","content":[`, tail: `]}` + end, values: 3,
			element: plain(`{"\u0074ype":"\u0074ext","text":"a`, `"}`)},
	)
	return append(all, honest(Body{Name: "a long talk", Make: func(size int) []byte {
		return series{head: start, tail: "," + question + end, values: 3, element: func(dst []byte, i int, _ []byte) []byte {
			dst = append(dst, `{"role":"`...)
			dst = append(dst, [2]string{"user", "assistant"}[i%2]...)
			dst = append(dst, `","content":"`...)
			for range 4 {
				dst = append(dst, `Yes. First look at the log:\n\n    grep -n \"refused\" server.log\n\nThen check the naïve way: does the café’s proxy answer at all? `...)
			}
			return append(dst, `"}`...)
		}}.make(size, size, false)
	}}))
}

// calls have many tool calls, their ids made to meet each other.
func calls() []Body {
	turn := func(id func(dst []byte, i int) []byte) func([]byte, int, []byte) []byte {
		return func(dst []byte, i int, pad []byte) []byte {
			dst = append(dst, `{"role":"assistant","tool_calls":[{"id":"`...)
			dst = id(dst, i)
			dst = append(dst, `","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"`...)
			dst = id(dst, i)
			dst = append(dst, `","content":"`...)
			return append(append(dst, pad...), `"}`...)
		}
	}
	id := func(before, after string) func([]byte, int) []byte {
		return func(dst []byte, i int) []byte { return number(dst, before, i, after) }
	}
	fixed := func(text string) func([]byte, int) []byte {
		return func(dst []byte, _ int) []byte { return append(dst, text...) }
	}
	const turnValues = 11
	with := func(name string, f func([]byte, int) []byte) series {
		return series{name: name, head: start + question + ",", tail: end, values: turnValues, element: turn(f)}
	}
	all := together(
		with("calls with good ids", id("call_", "")),
		with("calls with foreign ids", id("f!", ":0")),
		with("calls with one good id", fixed("call_0")),
		with("calls with one foreign id", fixed("!")),
		with("calls with empty ids", fixed("")),
		with("calls with ids that look mapped", func(dst []byte, i int) []byte {
			return number(dst, [2]string{"ezatid-a_21", "a!"}[i%2], i/2, "")
		}),
		with("calls with spelled ids", func(dst []byte, i int) []byte { return number(dst, `\u0061`, i, "") }),
		series{name: "calls without results", head: start + question + `,{"role":"assistant","tool_calls":[`, tail: `]}` + end, values: 4,
			element: func(dst []byte, i int, pad []byte) []byte {
				dst = append(number(dst, `{"id":"!`, i, ""), pad...)
				return append(dst, `","function":{"name":"f"}}`...)
			}},
		series{name: "calls with arguments", head: start + question + `,{"role":"assistant","tool_calls":[`, tail: `]}` + end, values: 9,
			element: func(dst []byte, i int, pad []byte) []byte {
				dst = append(number(dst, `{"id":"c`, i, `","function":{"name":"f","arguments":"{\"a\":[1,{\"b\":\"`), pad...)
				return append(dst, `\"}]}"}}`...)
			}},
	)
	return append(all,
		Body{Name: "equal ids in one turn, with results", Make: equalIDs},
		Body{Name: "three ids that lengthen each other", Make: func(size int) []byte { return LengthenedIDs(size/4, 200, false) }},
		Body{Name: "three ids that lengthen each other, with results", Make: func(size int) []byte { return LengthenedIDs(size/4, 1000, true) }},
	)
}

// equalIDs is one turn of calls that share an id, and their results.
func equalIDs(size int) []byte {
	const call, result = `{"id":"a!","function":{"name":"f"}}`, `{"role":"tool","tool_call_id":"a!","content":"r"}`
	n := max(1, min((ValuesMax-spareValues)/8, (size-200)/(len(call)+len(result)+2)))
	var b strings.Builder
	b.WriteString(start + question + `,{"role":"assistant","tool_calls":[` + call)
	b.WriteString(strings.Repeat(","+call, n-1))
	b.WriteString(`]}`)
	b.WriteString(strings.Repeat(","+result, n))
	b.WriteString(end)
	return []byte(b.String())
}

// LengthenedIDs is a turn with a good id that begins like a mapped one and ends in
// run of "_", a good id that is the mapped form of `a!`, and n calls `a!`. Where
// every id has to keep apart from the longest, n calls cost n times run bytes.
func LengthenedIDs(run, n int, results bool) []byte {
	ids := []string{"ezatid-" + strings.Repeat("_", run), "ezatid-a_21"}
	for range n {
		ids = append(ids, "a!")
	}
	var b strings.Builder
	b.WriteString(start + question + `,{"role":"assistant","tool_calls":[`)
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}`)
	}
	b.WriteString(`]}`)
	if results {
		for _, id := range ids {
			b.WriteString(`,{"role":"tool","tool_call_id":"` + id + `","content":"r"}`)
		}
	}
	b.WriteString(end)
	return []byte(b.String())
}

// objects have many keys that mean nothing.
func objects() []Body {
	keys := func(n int, spelled bool) func([]byte, int, []byte) []byte {
		return func(dst []byte, i int, pad []byte) []byte {
			dst = append(dst, `{"role":"user","content":"a"`...)
			for k := range n {
				dst = append(dst, `,"`...)
				if spelled {
					dst = append(dst, `\u006b`...)
				}
				dst = strconv.AppendInt(dst, int64(i*n+k), 36)
				if k == 0 {
					dst = append(dst, pad...)
				}
				dst = append(dst, `":0`...)
			}
			return append(dst, '}')
		}
	}
	messages := func(name string, n int, spelled bool) series {
		return series{name: name, head: start, tail: end, values: n + 3, element: keys(n, spelled)}
	}
	key := func(before string) func([]byte, int, []byte) []byte {
		return func(dst []byte, i int, pad []byte) []byte {
			return append(append(number(dst, before, i, ""), pad...), `":0`...)
		}
	}
	return append(together(
		series{name: "ignored keys", head: `{`, tail: "," + start[1:] + question + end, values: 1, most: MembersMax - 8, element: key(`"`)},
		series{name: "ignored keys with spelled letters", head: `{`, tail: "," + start[1:] + question + end, values: 1, most: MembersMax - 8, element: key(`"\u006b`)},
		series{name: "ignored keys of halves", head: `{`, tail: "," + start[1:] + question + end, values: 1, most: MembersMax - 8, element: key(`"\ud83d`)},
		messages("messages with 9 ignored keys", 9, false),
		messages("messages with 100 ignored keys", 100, false),
		messages("messages with 9,990 ignored keys", 9_990, false),
		messages("messages with 9,990 spelled keys", 9_990, true),
		series{name: "parts with ignored objects", head: start + `{"role":"user","content":[`, tail: `]}` + end, values: 7,
			element: plain(`{"type":"text","x":{"a":{"b":[]}},"text":"a`, `"}`)},
		series{name: "metadata", head: `{"metadata":{`, tail: `},` + start[1:] + question + end, values: 1, element: key(`"`)},
		series{name: "logit bias", head: `{"logit_bias":{`, tail: `},` + start[1:] + question + end, values: 1, element: key(`"`)},
	), Body{Name: "one key twice, behind many", Make: func(size int) []byte {
		b := series{head: `{`, tail: `,"0":0,` + start[1:] + question + end, values: 1, element: key(`"`)}
		return b.make(size, MembersMax-8, false)
	}})
}
