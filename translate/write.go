package translate

import (
	"encoding/base64"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

// Write emits the upstream's request body in order. It decides nothing. Each
// piece is good only during the call of emit; large spans of the client's body
// come as pieces of their own, uncopied. What varies from turn to turn of a
// conversation comes last, so that a longer conversation begins with the same
// bytes.
func (p *Plan) Write(emit func(piece []byte)) {
	parser := p.request.parser
	if parser.out == nil {
		parser.out = make([]byte, 0, 2*pieceBytes)
	}
	w := writer{buf: parser.out, emit: emit, images: p.images, calls: p.request.calls}
	w.fields(p)
	w.tools(p)
	w.system(p)
	w.messages(p)
	w.text("}")
	w.flush()
}

// writer joins small pieces before it hands them on.
type writer struct {
	buf    []byte
	emit   func([]byte)
	images []Image
	calls  []call
}

func (w *writer) text(s string) {
	if len(w.buf)+len(s) > cap(w.buf) {
		w.flush()
	}
	w.buf = append(w.buf, s...)
}

// span writes a span of the body, or anything that stays unchanged.
func (w *writer) span(b []byte) {
	if len(w.buf)+len(b) > cap(w.buf) {
		w.flush()
		if len(b) >= pieceBytes {
			w.emit(b)
			return
		}
	}
	w.buf = append(w.buf, b...)
}

// quoted writes a short text of ours as a JSON string.
func (w *writer) quoted(s string) {
	if room := cap(w.buf) - len(w.buf); len(s) > room/longestEscape-2 {
		w.span(jsontext.AppendQuoted(nil, s))
		return
	}
	w.buf = jsontext.AppendQuoted(w.buf, s)
}

// longestEscape is how many bytes a byte of a text can become in a JSON string.
const longestEscape = 6

func (w *writer) flush() {
	if len(w.buf) > 0 {
		w.emit(w.buf)
		w.buf = w.buf[:0]
	}
}

// fields writes what is neither tools, system nor messages.
func (w *writer) fields(p *Plan) {
	w.text(`{"model":`)
	w.quoted(p.model)
	w.text(`,"max_tokens":`)
	w.span(p.maxTokens)
	if p.Reply.Stream {
		w.text(`,"stream":true`)
	}
	if p.thinking {
		w.text(`,"thinking":{"type":"adaptive"}`)
	}
	w.outputConfig(p)
	if p.temperature != nil {
		w.text(`,"temperature":`)
		w.span(p.temperature)
	}
	if p.topP != nil {
		w.text(`,"top_p":`)
		w.span(p.topP)
	}
	w.stop(p.request.stop)
	w.choice(p.choice)
}

// stop writes what stop says: one string or a list, empty ones left out.
func (w *writer) stop(stop jsontext.Value) {
	n := 0
	one := func(v jsontext.Value) {
		if !v.Empty() {
			w.text(separator(n, `,"stop_sequences":[`))
			w.span(span(v))
			n++
		}
	}
	switch stop.Kind() {
	case jsontext.String:
		one(stop)
	case jsontext.Array:
		for it := stop.Items(); it.Next(); {
			one(it.Value())
		}
	}
	if n > 0 {
		w.text(`]`)
	}
}

// separator begins a list before its first element and parts it before others.
func separator(i int, begin string) string {
	if i == 0 {
		return begin
	}
	return ","
}

// outputConfig writes effort and format, which share one object.
func (w *writer) outputConfig(p *Plan) {
	schema := p.request.schema
	if p.effort == "" && !schema.Sent() {
		return
	}
	w.text(`,"output_config":{`)
	if p.effort != "" {
		w.text(`"effort":"`)
		w.text(p.effort)
		w.text(`"`)
	}
	if schema.Sent() {
		if p.effort != "" {
			w.text(",")
		}
		w.text(`"format":{"type":"json_schema","schema":`)
		w.span(span(schema))
		w.text(`}`)
	}
	w.text(`}`)
}

// choice writes tool_choice (contract, "Tools"; decision 19).
func (w *writer) choice(c toolChoice) {
	switch c.kind {
	case choiceUnset:
		if c.single {
			w.text(`,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`)
		}
		return
	case choiceNone:
		w.text(`,"tool_choice":{"type":"none"}`)
		return
	case choiceAuto:
		w.text(`,"tool_choice":{"type":"auto"`)
	case choiceRequired:
		w.text(`,"tool_choice":{"type":"any"`)
	case choiceNamed:
		w.text(`,"tool_choice":{"type":"tool","name":"`)
		w.span(c.name)
		w.text(`"`)
	}
	if c.single {
		w.text(`,"disable_parallel_tool_use":true`)
	}
	w.text(`}`)
}

func (w *writer) tools(p *Plan) {
	tools := p.request.tools
	for i := range tools {
		w.text(separator(i, `,"tools":[`))
		w.tool(&tools[i], p.markTools && i == len(tools)-1)
	}
	if len(tools) > 0 {
		w.text(`]`)
	}
}

func (w *writer) tool(t *tool, automatic bool) {
	w.text(`{"name":`)
	w.span(span(t.name))
	if t.description.Sent() {
		w.text(`,"description":`)
		w.span(span(t.description))
	}
	w.text(`,"input_schema":`)
	switch {
	case !t.parameters.Sent() || t.parameters.Empty():
		w.text(`{"type":"object","properties":{}}`)
	case t.typed:
		w.span(span(t.parameters))
	default:
		w.text(`{"type":"object",`)
		w.span(span(t.parameters)[1:])
	}
	if t.strict.Sent() {
		w.text(`,"strict":`)
		w.span(t.strict.Raw())
	}
	w.mark(t.mark, automatic)
	w.text(`}`)
}

func (w *writer) system(p *Plan) {
	system := p.request.system
	for i := range system {
		w.text(separator(i, `,"system":[`))
		w.block(&system[i], p.markSystem && i == len(system)-1)
	}
	if len(system) > 0 {
		w.text(`]`)
	}
}

func (w *writer) messages(p *Plan) {
	turns := p.request.turns
	w.text(`,"messages":[`)
	for i := range turns {
		t := &turns[i]
		if i > 0 {
			w.text(`,`)
		}
		if t.assistant {
			w.text(`{"role":"assistant","content":[`)
		} else {
			w.text(`{"role":"user","content":[`)
		}
		last := len(t.results) + len(t.blocks) - 1
		newest := p.markNewest && i == len(turns)-1
		w.blocks(t.results, 0, last, newest)
		w.blocks(t.blocks, len(t.results), last, newest)
		w.text(`]}`)
	}
	w.text(`]`)
}

// blocks writes a part of a turn's blocks, the first of which is number first of
// the turn.
func (w *writer) blocks(blocks []block, first, last int, newest bool) {
	for i := range blocks {
		if first+i > 0 {
			w.text(`,`)
		}
		w.block(&blocks[i], newest && first+i == last)
	}
}

func (w *writer) block(b *block, automatic bool) {
	switch b.kind {
	case textBlock:
		w.text(`{"type":"text","text":"`)
		w.span(b.body)
		w.text(`"`)
	case imageBlock:
		if b.fetch > 0 {
			w.image(&w.images[b.fetch-1])
			break
		}
		w.file(`{"type":"image","source":{"type":"base64","media_type":"`, b)
	case documentBlock:
		w.file(`{"type":"document","source":{"type":"base64","media_type":"`, b)
	case toolUseBlock:
		w.text(`{"type":"tool_use","id":"`)
		w.span(w.calls[b.tool.call].name)
		w.text(`","name":"`)
		w.span(b.tool.name)
		w.text(`","input":`)
		w.span(b.body)
	case toolResultBlock:
		w.text(`{"type":"tool_result","tool_use_id":"`)
		w.span(w.calls[b.tool.call].name)
		w.text(`"`)
		parts := b.tool.parts
		for i := range parts {
			w.text(separator(i, `,"content":[`))
			w.block(&parts[i], false)
		}
		if len(parts) > 0 {
			w.text(`]`)
		}
	}
	w.mark(b.mark, automatic)
	w.text(`}`)
}

func (w *writer) file(begin string, b *block) {
	w.text(begin)
	w.text(b.media)
	w.text(`","data":"`)
	w.span(b.body)
	w.text(`"}`)
}

// image writes a downloaded image, encoded into the buffer piece by piece.
func (w *writer) image(image *Image) {
	w.text(`{"type":"image","source":{"type":"base64","media_type":"`)
	w.text(image.Type)
	w.text(`","data":"`)
	w.flush()
	for data := image.Data; len(data) > 0; {
		n := min(len(data), cap(w.buf)/4*3)
		w.buf = base64.StdEncoding.AppendEncode(w.buf[:0], data[:n])
		w.flush()
		data = data[n:]
	}
	w.text(`"}`)
}

// mark writes a cache breakpoint: the client's own, or an automatic one.
func (w *writer) mark(own *mark, automatic bool) {
	if own == nil {
		if automatic {
			w.text(`,"cache_control":{"type":"ephemeral"}`)
		}
		return
	}
	w.text(`,"cache_control":{"type":`)
	w.span(own.kind)
	if own.ttl != nil {
		w.text(`,"ttl":`)
		w.span(own.ttl)
	}
	w.text(`}`)
}
