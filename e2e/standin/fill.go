package standin

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds of made-up values: a schema may nest and refer to itself.
const (
	fillLevelsMax  = 24
	fillOptionsMax = 8 // levels down to which optional arrays get an item
	fillValuesMax  = 2_000
	fillTextMax    = 1_000
)

// filler makes JSON that satisfies a schema, in the spelling in which the
// live API streams tool input: a space after each comma and colon.
type filler struct {
	root   node
	city   string // goes into every property that looks like a place
	values int
}

// fill returns JSON for schema. Patterns and combinations of constraints are
// beyond it.
func fill(schema node, city string) string {
	f := &filler{root: schema, city: city}
	return string(f.value(nil, schema, "", 0))
}

func (f *filler) value(dst []byte, schema node, key string, level int) []byte {
	if f.values++; f.values > fillValuesMax || level > fillLevelsMax {
		return append(dst, "null"...)
	}
	if target, ok := resolve(f.root, schema.text("$ref")); ok {
		return f.value(dst, target, key, level+1)
	}
	if v, ok := schema.get("const"); ok {
		return append(dst, v.raw...)
	}
	if v := schema.at("enum"); len(v.kids) > 0 {
		return append(dst, v.kids[0].raw...)
	}
	for _, union := range []string{"anyOf", "oneOf"} {
		if v := schema.at(union); len(v.kids) > 0 {
			return f.value(dst, notNull(v.kids), key, level+1)
		}
	}
	parts := f.parts(schema, level)
	switch f.kindOf(parts) {
	case "null":
		return append(dst, "null"...)
	case "boolean":
		return append(dst, "true"...)
	case "integer":
		return strconv.AppendFloat(dst, number(schema, 1), 'f', -1, 64)
	case "number":
		return strconv.AppendFloat(dst, number(schema, 0.125), 'f', -1, 64)
	case "array":
		return f.array(dst, schema, key, level)
	case "object":
		return f.object(dst, parts, level)
	}
	return appendString(dst, f.text(schema, key))
}

// notNull picks the first option that is not the null of an optional value.
func notNull(options []node) node {
	for _, option := range options {
		if option.text("type") != "null" {
			return option
		}
	}
	return options[0]
}

// parts returns a schema and what its allOf adds.
func (f *filler) parts(schema node, level int) []node {
	parts := []node{schema}
	if level > fillLevelsMax {
		return parts
	}
	for _, part := range schema.at("allOf").kids {
		if target, ok := resolve(f.root, part.text("$ref")); ok {
			part = target
		}
		if f.values++; f.values > fillValuesMax {
			return parts
		}
		parts = append(parts, f.parts(part, level+1)...)
	}
	return parts
}

func (f *filler) kindOf(parts []node) string {
	for _, part := range parts {
		for _, name := range types(part) {
			if name != "null" || len(types(part)) == 1 {
				return name
			}
		}
	}
	for _, part := range parts {
		if part.has("properties") {
			return "object"
		}
	}
	return "string"
}

func (f *filler) object(dst []byte, parts []node, level int) []byte {
	required := map[string]bool{}
	for _, part := range parts {
		for _, name := range part.at("required").kids {
			required[name.str()] = true
		}
	}
	dst = append(dst, '{')
	written := map[string]bool{}
	for _, part := range parts {
		properties := part.at("properties")
		for i := 0; i+1 < len(properties.kids); i += 2 {
			key := properties.kids[i]
			name := key.str()
			if f.values > fillValuesMax {
				break
			}
			if written[name] || !required[name] && !isPlace(name) {
				continue
			}
			if len(written) > 0 {
				dst = append(dst, ", "...)
			}
			written[name] = true
			dst = append(append(dst, key.raw...), ": "...)
			dst = f.value(dst, properties.kids[i+1], name, level+1)
		}
	}
	return append(dst, '}')
}

func (f *filler) array(dst []byte, schema node, key string, level int) []byte {
	least, _ := schema.at("minItems").integer()
	if most, ok := schema.at("maxItems").integer(); (!ok || most > 0) && least == 0 && level < fillOptionsMax {
		least = 1
	}
	dst = append(dst, '[')
	for i := range min(least, fillTextMax) {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = f.value(dst, schema.at("items"), key, level+1)
	}
	return append(dst, ']')
}

// number picks 1, or the multiple of step nearest to it that the bounds
// allow.
func number(schema node, step float64) float64 {
	v := 1.0
	if m := schema.at("multipleOf").float(); m > 0 {
		v, step = m, m
	}
	low, high := schema.at("minimum").float(), schema.at("maximum").float()
	if v < low {
		v = math.Ceil(low/step) * step
	}
	if v > high {
		v = math.Floor(high/step) * step
	}
	if x := schema.at("exclusiveMinimum").float(); v <= x {
		v = (math.Floor(x/step) + 1) * step
	}
	if x := schema.at("exclusiveMaximum").float(); v >= x {
		v = (math.Ceil(x/step) - 1) * step
	}
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	return v
}

var formatExamples = map[string]string{
	"date-time": "2026-11-30T12:00:00Z", "time": "12:00:00Z", "date": "2026-11-30", "duration": "PT1H",
	"email": "ada@example.com", "hostname": "example.com", "uri": "https://example.com/",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uuid": "123e4567-e89b-42d3-a456-426614174000",
}

func (f *filler) text(schema node, key string) string {
	if example, ok := formatExamples[schema.text("format")]; ok {
		return example
	}
	text := "example"
	if key != "" {
		text = "example " + key
	}
	if isPlace(key) {
		text = f.city
	}
	if least, _ := schema.at("minLength").integer(); int64(len(text)) < least {
		text += strings.Repeat("x", max(0, int(min(least, fillTextMax))-len(text)))
	}
	if most, ok := schema.at("maxLength").integer(); ok && int64(len(text)) > most {
		text = strings.ToValidUTF8(text[:max(most, 0)], "")
	}
	return text
}

// isPlace tells properties that are filled with a city.
func isPlace(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"city", "location", "place"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}
