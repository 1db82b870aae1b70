package standin

import (
	"fmt"
	"slices"
	"strings"
)

// check looks at one value. path is the value's place as the API writes it,
// for example messages.0.content.1.text.
type check func(path string, v node) *APIError

// field is one key of an object that the API owns.
type field struct {
	key      string
	check    check
	required bool
	nullable bool
}

func need(key string, c check) field  { return field{key: key, check: c, required: true} }
func opt(key string, c check) field   { return field{key: key, check: c} }
func maybe(key string, c check) field { return field{key: key, check: c, nullable: true} }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func at(path string, i int) string { return fmt.Sprintf("%s.%d", path, i) }

// object checks n against its fields; a key outside them, or one that comes
// twice, is refused. The live API's reader keeps the last of two equal keys;
// they are refused here because a translator must never write them.
func object(path string, n node, fields ...field) *APIError {
	if n.kind != kindObject {
		return invalid("%s: Input should be a valid dictionary", orBody(path))
	}
	seen := make(map[string]node, len(n.kids)/2)
	for i := 0; i < len(n.kids); i += 2 {
		key := n.kids[i].str()
		if _, twice := seen[key]; twice {
			return invalid("%s: Duplicate field", join(path, key))
		}
		seen[key] = n.kids[i+1]
	}
	for _, f := range fields {
		v, ok := seen[f.key]
		if !ok && f.required {
			return invalid("%s: Field required", join(path, f.key))
		}
		if !ok || f.nullable && v.kind == kindNull {
			continue
		}
		if err := f.check(join(path, f.key), v); err != nil {
			return err
		}
	}
	return noExtras(path, n, fields)
}

func noExtras(path string, n node, fields []field) *APIError {
	for i := 0; i < len(n.kids); i += 2 {
		key := n.kids[i].str()
		if !slices.ContainsFunc(fields, func(f field) bool { return f.key == key }) {
			return invalid("%s: Extra inputs are not permitted", join(path, key))
		}
	}
	return nil
}

func orBody(path string) string {
	if path == "" {
		return "request body"
	}
	return path
}

func isObject(path string, v node) *APIError {
	if v.kind != kindObject {
		return invalid("%s: Input should be a valid dictionary", path)
	}
	return nil
}

func isString(path string, v node) *APIError {
	if v.kind != kindString {
		return invalid("%s: Input should be a valid string", path)
	}
	return nil
}

func isBool(path string, v node) *APIError {
	if v.kind != kindBool {
		return invalid("%s: Input should be a valid boolean", path)
	}
	return nil
}

func isArray(path string, v node) *APIError {
	if v.kind != kindArray {
		return invalid("%s: Input should be a valid array", path)
	}
	return nil
}

// oneOf accepts exactly the given strings.
func oneOf(values ...string) check {
	return func(path string, v node) *APIError {
		if v.kind != kindString || !slices.Contains(values, v.str()) {
			return invalid("%s: Input should be %s", path, quoteList(values, " or "))
		}
		return nil
	}
}

// listOf checks that v is an array, and every element with c.
func listOf(c check) check {
	return func(path string, v node) *APIError {
		if err := isArray(path, v); err != nil {
			return err
		}
		for i, element := range v.kids {
			if err := c(at(path, i), element); err != nil {
				return err
			}
		}
		return nil
	}
}

// between checks a number's range, both ends included.
func between(low, high float64) check {
	return func(path string, v node) *APIError {
		switch f := v.float(); {
		case v.kind != kindNumber:
			return invalid("%s: Input should be a valid number", path)
		case f < low:
			return invalid("%s: range: %g..%g", path, low, high)
		case f > high:
			return invalid("%s: range: %g..%g", path, low, high)
		}
		return nil
	}
}

func quoteList(values []string, last string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = "'" + v + "'"
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	end := len(quoted) - 1
	return strings.Join(quoted[:end], ", ") + last + quoted[end]
}

// tagged picks the variant of an object by its type.
func tagged(path string, v node, variants map[string]check) *APIError {
	if v.kind != kindObject {
		return invalid("%s: Input should be a valid dictionary", path)
	}
	tag, ok := v.get("type")
	if !ok || tag.kind != kindString {
		return invalid("%s.type: Field required", path)
	}
	c, ok := variants[tag.str()]
	if !ok {
		return invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags: %s",
			path, tag.str(), quoteList(sortedKeys(variants), ", "))
	}
	return c(path, v)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
