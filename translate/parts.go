package translate

import "ezat.io/chat-completions/translate/internal/jsontext"

// partSet says which content parts a role may have.
type partSet uint8

const (
	partText partSet = 1 << iota
	partRefusal
	partFiles // image_url and file

	partsOfSystem    = partText
	partsOfUser      = partText | partFiles
	partsOfAssistant = partText | partRefusal
	partsOfTool      = partText | partFiles
)

// Members of a part.
const (
	partType = iota
	partTextField
	partImageURL
	partFile
	partRefusalField
	partCacheControl
	partMembers
)

var partKeys = newKeys("type", "text", "image_url", "file", "refusal", "cache_control")

// content reads a message's content, a string, parts, or nothing, and appends its
// blocks. Empty text and refusals are left out (decision 11).
func (c *conversation) content(blocks []block, v jsontext.Value, allowed partSet) ([]block, *fault) {
	switch v.Kind() {
	case jsontext.Absent, jsontext.Null:
		return blocks, nil
	case jsontext.String:
		if v.Empty() {
			return blocks, nil
		}
		return c.add(blocks, block{kind: textBlock, body: inner(v)}), nil
	case jsontext.Array:
		return c.parts(blocks, v, allowed)
	}
	return blocks, bad("must be a string or an array of parts")
}

func (c *conversation) parts(blocks []block, v jsontext.Value, allowed partSet) ([]block, *fault) {
	for it := v.Items(); it.Next(); {
		c.partIndex = it.Index()
		b, ok, f := c.part(it.Value(), allowed)
		if f != nil {
			return blocks, f.at(it.Index())
		}
		if ok {
			blocks = c.add(blocks, b)
		}
	}
	return blocks, nil
}

// part reads one part; ok is false for one that is left out.
func (c *conversation) part(v jsontext.Value, allowed partSet) (b block, ok bool, f *fault) {
	if f := object(v); f != nil {
		return b, false, f
	}
	var m [partMembers]jsontext.Value
	if f := members(v, partKeys, m[:]); f != nil {
		return b, false, f
	}
	if b.mark, f = c.mark(m[partCacheControl]); f != nil {
		return b, false, f.in("cache_control")
	}
	switch kind := m[partType]; {
	case kind.Is("text"):
		ok, f = readText(m[partTextField], &b)
	case kind.Is("image_url") && allowed&partFiles != 0:
		f = c.image(m[partImageURL], &b)
		ok = true
	case kind.Is("file") && allowed&partFiles != 0:
		f = c.file(m[partFile], &b)
		ok = true
	case kind.Is("refusal") && allowed&partRefusal != 0:
		return b, false, optionalString(m[partRefusalField], "refusal")
	case kind.Is("input_audio"):
		return b, false, bad("audio input is not supported")
	default:
		return b, false, bad(allowed.text()).in("type")
	}
	return b, ok, f
}

// text says which part types may stand there.
func (allowed partSet) text() string {
	switch {
	case allowed&partFiles != 0:
		return "must be one of text, image_url and file"
	case allowed&partRefusal != 0:
		return "must be text or refusal"
	}
	return "must be text"
}

func readText(v jsontext.Value, b *block) (ok bool, f *fault) {
	if v.Kind() != jsontext.String {
		return false, bad("must be a string").in("text")
	}
	b.kind = textBlock
	b.body = inner(v)
	return !v.Empty(), nil
}

func optionalString(v jsontext.Value, name string) *fault {
	if v.Sent() && v.Kind() != jsontext.String {
		return bad("must be a string").in(name)
	}
	return nil
}
