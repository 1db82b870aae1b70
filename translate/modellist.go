package translate

import (
	"strconv"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

// ModelList gathers the upstream's pages of models and writes them as OpenAI's
// list (operator's contract, "Paths"). The zero value is ready.
type ModelList struct {
	models []listedModel
	seen   map[string]int // id → its place in models
	pages  int
	after  string
	bytes  int // of the ids
}

// listedBytes is about what a model takes in the list beside its id.
const listedBytes = 96

// Held is the memory of the list so far, in bytes.
func (l *ModelList) Held() int { return l.bytes + len(l.models)*listedBytes }

type listedModel struct {
	id      string // the upstream's
	created int64
}

// Add takes the next page, the body of an upstream's 200. after is the cursor of
// the page behind it, fit for a query (`after_id=…`), and "" at the last page. A
// body that is no page is a 500, and so is a list that does not end.
func (l *ModelList) Add(page []byte) (after string, err *Error) {
	var doc jsontext.Doc
	if doc.Scan(page, jsontext.Limits{Depth: nestingLevelsMax, Values: answerValuesMax}) != nil {
		return "", BadUpstream()
	}
	root := doc.Root()
	data := root.Get("data")
	if data.Kind() != jsontext.Array {
		return "", BadUpstream()
	}
	for it := data.Items(); it.Next(); {
		m, ok := readModel(it.Value())
		if !ok || !l.add(m) {
			return "", BadUpstream()
		}
	}
	after, ok := nextCursor(root)
	l.pages++
	if !ok || after != "" && (after == l.after || l.pages == modelPagesMax) {
		return "", BadUpstream()
	}
	l.after = after
	return after, nil
}

// add keeps a model, each id once; false when there are too many.
func (l *ModelList) add(m listedModel) bool {
	if _, again := l.seen[m.id]; again {
		return true
	}
	if l.seen == nil {
		l.seen = make(map[string]int)
	}
	l.seen[m.id] = len(l.models)
	l.models = append(l.models, m)
	l.bytes += len(m.id)
	return len(l.models) <= modelsMax
}

// readModel reads an upstream's model.
func readModel(v jsontext.Value) (m listedModel, ok bool) {
	kind, id, created := v.Get("type"), v.Get("id"), v.Get("created_at")
	if kind.Sent() && !kind.Is("model") || id.Kind() != jsontext.String || id.Empty() || len(id.Inner()) > modelIDBytesMax {
		return m, false
	}
	m.id = id.Text()
	if created.Kind() == jsontext.String {
		m.created = unixSeconds(created.Bytes())
	}
	return m, true
}

// nextCursor reads the cursor of the page behind this one.
func nextCursor(root jsontext.Value) (after string, ok bool) {
	switch root.Get("has_more").Kind() {
	case jsontext.Absent, jsontext.Null, jsontext.False:
		return "", true
	case jsontext.True:
	default:
		return "", false
	}
	last := root.Get("last_id")
	if last.Kind() != jsontext.String || last.Empty() || len(last.Inner()) > modelIDBytesMax {
		return "", false
	}
	return queryValue(last.Bytes()), true
}

// queryValue spells text for a query: all but RFC 3986's unreserved characters
// are percent-encoded.
func queryValue(text []byte) string {
	const hex = "0123456789ABCDEF"
	var out []byte
	for _, c := range text {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c-'0' <= 9, c == '-', c == '.', c == '_', c == '~':
			out = append(out, c)
		default:
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}

// Append appends the whole list: the upstream's models in its order with the
// prefix in front, then the configured names that are not among them, in the
// order of the configuration.
func (l *ModelList) Append(dst []byte, m *Models) []byte {
	dst = append(dst, `{"object":"list","data":[`...)
	first := len(dst)
	listed := make(map[string]struct{}, len(l.models)+len(m.names))
	for _, model := range l.models {
		listed[m.prefix+model.id] = struct{}{}
		dst = appendListedModel(dst, first, m.prefix+model.id, model.created)
	}
	for _, name := range m.names {
		if _, again := listed[name]; again {
			continue
		}
		dst = appendListedModel(dst, first, name, l.createdOf(m.configured[name].Upstream))
	}
	return append(dst, `]}`...)
}

// createdOf is when an upstream's model was made, 0 for one that is not listed.
func (l *ModelList) createdOf(id string) int64 {
	if i, ok := l.seen[id]; ok {
		return l.models[i].created
	}
	return 0
}

// AppendModel translates the upstream's answer for one model and appends it
// under the name that was asked for. A body that is no model is a 500, and
// nothing is appended then.
func AppendModel(dst, body []byte, asked string) ([]byte, *Error) {
	var doc jsontext.Doc
	if doc.Scan(body, jsontext.Limits{Depth: nestingLevelsMax, Values: answerValuesMax}) != nil {
		return dst, BadUpstream()
	}
	model, ok := readModel(doc.Root())
	if !ok {
		return dst, BadUpstream()
	}
	return appendListedModel(dst, len(dst), asked, model.created), nil
}

// appendListedModel appends one model in OpenAI's shape, behind a comma unless
// it is the first one.
func appendListedModel(dst []byte, first int, id string, created int64) []byte {
	if len(dst) > first {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"id":`...)
	dst = jsontext.AppendQuoted(dst, id)
	dst = append(dst, `,"object":"model","created":`...)
	dst = strconv.AppendInt(dst, created, 10)
	return append(dst, `,"owned_by":"anthropic"}`...)
}
