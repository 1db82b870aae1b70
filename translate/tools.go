package translate

import "ezat.io/chat-completions/translate/internal/jsontext"

// tool is one function tool (contract, "Tools").
type tool struct {
	name        jsontext.Value
	description jsontext.Value // absent, null or a string
	parameters  jsontext.Value // absent, null or an object
	strict      jsontext.Value // absent, null or a boolean
	typed       bool           // parameters has a member type
	mark        *mark
}

type choiceKind uint8

const (
	choiceUnset choiceKind = iota
	choiceAuto
	choiceNone
	choiceRequired
	choiceNamed
)

// toolChoice is tool_choice and parallel_tool_calls together.
type toolChoice struct {
	kind   choiceKind
	name   []byte // choiceNamed: the spelling without quotes
	single bool   // at most one call in a turn
}

// forced tells whether the model must call a tool.
func (c toolChoice) forced() bool { return c.kind == choiceRequired || c.kind == choiceNamed }

// toolsExpected bounds the list that is made at once; more of them let it grow.
const toolsExpected = 64

// readTools reads tools, tool_choice and parallel_tool_calls. Without tools the
// other two are not even looked at (contract, "Tools"; decision 19).
func (r *Request) readTools(fields *[fieldCount]jsontext.Value) *fault {
	v := fields[fieldTools]
	if !v.Sent() {
		return nil
	}
	if f := array(v); f != nil {
		return f.in("tools")
	}
	n := 0
	for it := v.Items(); it.Next() && n < toolsExpected; {
		n++
	}
	r.tools = make([]tool, 0, n)
	for it := v.Items(); it.Next(); {
		if f := r.readTool(it.Value()); f != nil {
			return f.at(it.Index()).in("tools")
		}
	}
	if len(r.tools) == 0 {
		return nil
	}
	if f := r.readChoice(fields[fieldToolChoice]); f != nil {
		return f.in("tool_choice")
	}
	parallel := fields[fieldParallelToolCalls]
	on, f := flag(parallel)
	if f != nil {
		return f.in("parallel_tool_calls")
	}
	r.choice.single = parallel.Sent() && !on
	return nil
}

var (
	toolKeys     = newKeys("type", "function", "cache_control")
	functionKeys = newKeys("name", "description", "parameters", "strict")
	choiceKeys   = newKeys("type", "function")
	chosenKeys   = newKeys("name")
)

func (r *Request) readTool(v jsontext.Value) *fault {
	if f := object(v); f != nil {
		return f
	}
	var m [3]jsontext.Value
	if f := members(v, toolKeys, m[:]); f != nil {
		return f
	}
	if !m[0].Is("function") {
		return bad("only function tools are supported").in("type")
	}
	if !m[1].Sent() {
		return bad("is required").in("function")
	}
	t, f := readFunction(m[1])
	if f != nil {
		return f.in("function")
	}
	if t.mark, f = readMark(m[2]); f != nil {
		return f.in("cache_control")
	}
	r.marked = r.marked || t.mark != nil
	r.tools = append(r.tools, t)
	return nil
}

// readFunction reads a tool's function (decision 18).
func readFunction(v jsontext.Value) (t tool, f *fault) {
	var m [4]jsontext.Value
	if f := subobject(v, functionKeys, m[:]); f != nil {
		return t, f
	}
	t = tool{name: m[0], description: m[1], parameters: m[2], strict: m[3]}
	if f := functionName(t.name); f != nil {
		return t, f
	}
	if f := optionalString(t.description, "description"); f != nil {
		return t, f
	}
	if t.parameters.Sent() {
		if f := object(t.parameters); f != nil {
			return t, f.in("parameters")
		}
		t.typed = t.parameters.Get("type").Kind() != jsontext.Absent
	}
	if _, f := flag(t.strict); f != nil {
		return t, f.in("strict")
	}
	return t, nil
}

// functionName checks the name of a function, which must be there.
func functionName(v jsontext.Value) *fault {
	switch {
	case !v.Sent():
		return bad("is required").in("name")
	case v.Kind() != jsontext.String:
		return bad("must be a string").in("name")
	case v.Empty():
		return bad("must not be empty").in("name")
	}
	return nil
}

// readChoice reads tool_choice: the contract's four forms and no other
// (decision 19).
func (r *Request) readChoice(v jsontext.Value) *fault {
	const text = `must be "auto", "none", "required" or {"type": "function", "function": {"name": …}}`
	switch {
	case !v.Sent():
		return nil
	case v.Is("auto"):
		r.choice.kind = choiceAuto
		return nil
	case v.Is("none"):
		r.choice.kind = choiceNone
		return nil
	case v.Is("required"):
		r.choice.kind = choiceRequired
		return nil
	case v.Kind() != jsontext.Object:
		return bad(text)
	}
	var m, function [2]jsontext.Value
	if f := members(v, choiceKeys, m[:]); f != nil {
		return f
	}
	if !m[0].Is("function") || m[1].Kind() != jsontext.Object {
		return bad(text)
	}
	if f := members(m[1], chosenKeys, function[:1]); f != nil {
		return f.in("function")
	}
	if function[0].Kind() != jsontext.String {
		return bad(text)
	}
	name := string(function[0].Bytes())
	for _, t := range r.tools {
		if t.name.Is(name) {
			r.choice.kind = choiceNamed
			r.choice.name = inner(function[0])
			return nil
		}
	}
	return bad("names a function that is not in tools")
}
