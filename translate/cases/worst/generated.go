package worst

// Generated is a body of about size bytes made of pieces of all kinds, by a seed:
// the same one gives the same bytes. About half of them are good requests.
func Generated(seed uint64, size int) []byte {
	g := generator{state: seed*0x9E3779B97F4A7C15 + 1, room: size}
	b := []byte(`{"model":"` + Model + `"`)
	for g.one(3) {
		b = append(append(b, ','), g.member()...)
	}
	b = append(b, `,"messages":[`...)
	b = append(b, g.pick(system, user, `{"role":"user","content":"go"}`)...)
	for len(b) < size && g.room > 0 {
		b = append(append(b, ','), g.messages()...)
		g.room--
	}
	return append(b, `]}`...)
}

// generator draws numbers (xorshift), and bounds how many messages are drawn.
type generator struct {
	state uint64
	room  int
}

func (g *generator) n(below int) int {
	g.state ^= g.state << 13
	g.state ^= g.state >> 7
	g.state ^= g.state << 17
	return int(g.state >> 33 % uint64(below))
}

// one is true, but for one time in so many.
func (g *generator) one(in int) bool { return g.n(in) > 0 }

func (g *generator) pick(choices ...string) string { return choices[g.n(len(choices))] }

const (
	system = `{"role":"system","content":"\u3000 be brief \ud83d"}`
	user   = `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"\t","cache_control":{"type":"ephemeral"}}]}`
)

// text is a string's spelling, up to a few hundred bytes of it.
func (g *generator) text() string {
	text := ""
	for range g.n(6) {
		piece := g.pick(`a`, `\n`, ` `, `\u0061`, `\ud83d`, `\ude00`, `\ud83d\ude00`, "é", `\u2003`, `\"`, `\\`, `_`, `!`, `ezatid-`)
		for range 1 + g.n(12) {
			text += piece
		}
	}
	return text
}

// member is a top-level member, ignored or read.
func (g *generator) member() string {
	switch g.n(6) {
	case 0:
		return `"x` + g.text() + `":"` + g.text() + `"`
	case 1:
		return `"stop":["` + g.text() + `a"]`
	case 2:
		return `"metadata":{"` + g.text() + `":[1,{"a":"` + g.text() + `"}]}`
	case 3:
		return `"tools":[{"type":"function","function":{"name":"f` + g.text() + `","parameters":{"` + g.text() + `":["` + g.text() + `"]}}}]`
	case 4:
		return `"user":"` + g.text() + `"`
	}
	return `"prompt_cache_key":"` + g.text() + `"`
}

// messages are one message, or a turn of calls with its results.
func (g *generator) messages() string {
	switch g.n(5) {
	case 0:
		return `{"role":"assistant","content":"a` + g.text() + `"}`
	case 1:
		return `{"role":"user","content":"b` + g.text() + `","` + g.text() + `k":0}`
	case 2:
		return `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + g.pick("AAAA", `AA\nAA`, `\u0041AAA`, "AAA=") + `"}},{"type":"text","text":"` + g.text() + `"}]}`
	case 3:
		return g.pick(system, user)
	}
	calls, results := "", ""
	for range 1 + g.n(4) {
		id := g.pick("a!", "a_21", "ezatid-a_21", "call_0", "", "ezatid-a_21__1", g.text())
		comma := ","
		if calls == "" {
			comma = ""
		}
		calls += comma + `{"id":"` + id + `","function":{"name":"f","arguments":"` + g.pick(``, `{}`, `{\"a\":\"\\ud83d\"}`, `{ \"b\" : [1,2] }`) + `"}}`
		results += `,{"role":"tool","tool_call_id":"` + id + `","content":"` + g.text() + `"}`
	}
	return `{"role":"user","content":"go"},{"role":"assistant","tool_calls":[` + calls + `]}` + results
}
