package standin

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// validSchema tells whether a schema matches the meta-schema of JSON Schema
// draft 2020-12 in the keywords that tools use. Unknown keywords pass. top
// marks an input_schema itself, whose properties and required may be null.
func validSchema(schema node, top bool) bool {
	if schema.kind == kindBool {
		return true
	}
	if schema.kind != kindObject {
		return false
	}
	for i := 0; i < len(schema.kids); i += 2 {
		key, value := schema.kids[i].str(), schema.kids[i+1]
		if top && value.kind == kindNull && (key == "properties" || key == "required") {
			continue
		}
		if valid, known := keywords[key]; known && !valid(value) {
			return false
		}
	}
	return true
}

// keywords maps a keyword to the test of its value. It is filled in init
// because schemas nest.
var keywords map[string]func(node) bool

func init() {
	keywords = map[string]func(node) bool{
		"type": validType, "required": uniqueStrings, "enum": ofKind(kindArray), "examples": ofKind(kindArray),
		"multipleOf": func(v node) bool { return v.float() > 0 },
	}
	assign := func(valid func(node) bool, names ...string) {
		for _, name := range names {
			keywords[name] = valid
		}
	}
	assign(func(v node) bool { return validSchema(v, false) }, "items", "additionalProperties", "not", "if", "then", "else",
		"contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema")
	assign(schemaMap, "properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
	assign(schemaList, "anyOf", "oneOf", "allOf", "prefixItems")
	assign(ofKind(kindNumber), "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
	assign(size, "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains")
	assign(ofKind(kindString), "$ref", "$id", "$schema", "$anchor", "$comment", "title", "description", "format", "pattern")
	assign(ofKind(kindBool), "uniqueItems", "deprecated", "readOnly", "writeOnly")
}

func ofKind(k kind) func(node) bool { return func(v node) bool { return v.kind == k } }

func size(v node) bool {
	n, ok := v.integer()
	return ok && n >= 0
}

func schemaMap(v node) bool {
	for i := 1; i < len(v.kids); i += 2 {
		if !validSchema(v.kids[i], false) {
			return false
		}
	}
	return v.kind == kindObject
}

func schemaList(v node) bool {
	for _, schema := range v.kids {
		if !validSchema(schema, false) {
			return false
		}
	}
	return v.kind == kindArray && len(v.kids) > 0
}

var typeNames = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

func validType(v node) bool {
	if v.kind == kindString {
		return slices.Contains(typeNames, v.str())
	}
	for _, name := range v.kids {
		if !slices.Contains(typeNames, name.str()) {
			return false
		}
	}
	return len(v.kids) > 0 && uniqueStrings(v)
}

func uniqueStrings(v node) bool {
	seen := make(map[string]bool, len(v.kids))
	for _, s := range v.kids {
		if s.kind != kindString || seen[s.str()] {
			return false
		}
		seen[s.str()] = true
	}
	return v.kind == kindArray
}

// Limits of the schemas that constrain output. The API names those of
// optional and union-typed parameters; the others stand for its unnamed
// "too complex".
const (
	optionalsMax    = 24
	unionsMax       = 16
	schemaBytesMax  = 262_144
	schemaNodesMax  = 5_000
	schemaLevelsMax = 500
)

// subset checks the schemas whose grammar constrains output: those of strict
// tools and of output_config.format. It counts over all of them.
type subset struct {
	optionals int
	unions    int

	path    string
	root    node
	nodes   int
	walking map[*byte]bool // schemas on the way from the root to here
	done    map[*byte]bool
}

func (s *subset) check(path string, schema node) *APIError {
	s.path, s.root = path, schema
	s.walking, s.done = map[*byte]bool{}, map[*byte]bool{}
	if len(schema.raw) > schemaBytesMax {
		return invalid("Schema is too complex for compilation.")
	}
	return s.walk(schema)
}

func (s *subset) walk(schema node) *APIError {
	if schema.kind != kindObject {
		return invalid("%s: boolean schemas are not supported", s.path)
	}
	id := &schema.raw[0]
	if s.walking[id] {
		return invalid("%s: Circular reference detected in schema definitions", s.path)
	}
	if s.done[id] {
		return nil
	}
	if s.nodes++; s.nodes > schemaNodesMax || len(s.walking) >= schemaLevelsMax {
		return invalid("Schema is too complex for compilation.")
	}
	s.walking[id] = true
	defer func() {
		delete(s.walking, id)
		s.done[id] = true
	}()
	for _, rule := range []func(node) *APIError{s.keywords, s.object, s.values, s.nested, s.reference} {
		if err := rule(schema); err != nil {
			return err
		}
	}
	return nil
}

var (
	anyKeywords = []string{
		"type", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "definitions", "default",
		"title", "description", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly",
	}
	typeKeywords = map[string][]string{
		"object": {"properties", "required", "additionalProperties"},
		"array":  {"items", "minItems"},
		"string": {"format", "pattern"},
	}
	formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
	// backtracking finds what a grammar cannot express.
	backtracking = regexp.MustCompile(`\(\?(=|!|<=|<!)|\\[1-9]`)
)

// types returns the names in a schema's type.
func types(schema node) []string {
	v := schema.at("type")
	if v.kind == kindString {
		return []string{v.str()}
	}
	var names []string
	for _, name := range v.kids {
		names = append(names, name.str())
	}
	return names
}

// keywords refuses every keyword outside the supported ones.
func (s *subset) keywords(schema node) *APIError {
	if v, ok := schema.get("type"); ok && !validType(v) {
		return invalid("%s: Invalid schema: 'type' must name JSON types", s.path)
	}
	names := types(schema)
	describes := len(names) > 0
	for i := 0; i < len(schema.kids); i += 2 {
		key := schema.kids[i].str()
		describes = describes || slices.Contains([]string{"enum", "const", "anyOf", "allOf", "$ref"}, key)
		fits := func(name string) bool { return slices.Contains(typeKeywords[name], key) }
		if !slices.Contains(anyKeywords, key) && !slices.ContainsFunc(names, fits) {
			return invalid("%s: For '%s' type, property '%s' is not supported", s.path, strings.Join(names, ", "), key)
		}
	}
	if !describes {
		return invalid("%s: Schema must have a 'type'", s.path)
	}
	if schema.at("type").kind == kindArray || schema.at("anyOf").kind == kindArray {
		s.unions++
	}
	return nil
}

func (s *subset) object(schema node) *APIError {
	if !slices.Contains(types(schema), "object") {
		return nil
	}
	switch extra := schema.at("additionalProperties"); {
	case extra.isTrue():
		return invalid("%s: For 'object' type, 'additionalProperties: true' is not supported. Please set 'additionalProperties' to false", s.path)
	case extra.kind != kindBool:
		return invalid("%s: For 'object' type, 'additionalProperties' must be explicitly set to false", s.path)
	}
	required := map[string]bool{}
	if list, ok := schema.get("required"); ok {
		if !uniqueStrings(list) {
			return invalid("%s: For 'object' type, 'required' must be a list of unique strings", s.path)
		}
		for _, name := range list.kids {
			required[name.str()] = true
		}
	}
	properties, ok := schema.get("properties")
	if ok && properties.kind != kindObject {
		return invalid("%s: For 'object' type, 'properties' must be an object", s.path)
	}
	for i := 0; i < len(properties.kids); i += 2 {
		if !required[properties.kids[i].str()] {
			s.optionals++
		}
	}
	return nil
}

// values checks the keywords whose values are restricted.
func (s *subset) values(schema node) *APIError {
	if enum, ok := schema.get("enum"); ok {
		if enum.kind != kindArray || len(enum.kids) == 0 {
			return invalid("%s: 'enum' must be a list of values", s.path)
		}
		for _, v := range enum.kids {
			if v.kind == kindArray || v.kind == kindObject {
				return invalid("%s: 'enum' values must be strings, numbers, booleans or null", s.path)
			}
		}
	}
	if v, ok := schema.get("minItems"); ok {
		if n, whole := v.integer(); !whole || n < 0 || n > 1 {
			return invalid("%s: For 'array' type, 'minItems' values other than 0 or 1 are not supported", s.path)
		}
	}
	if v, ok := schema.get("format"); ok && !slices.Contains(formats, v.str()) {
		return invalid("%s: For 'string' type, 'format' value %s is not supported", s.path, strconv.Quote(v.str()))
	}
	if v, ok := schema.get("pattern"); ok && (v.kind != kindString || backtracking.MatchString(v.str())) {
		return invalid("%s: For 'string' type, 'pattern' with lookaround or backreference is not supported", s.path)
	}
	return nil
}

// nested walks the schemas inside a schema.
func (s *subset) nested(schema node) *APIError {
	var inner []node
	for _, key := range []string{"properties", "$defs", "definitions"} {
		v, ok := schema.get(key)
		if ok && v.kind != kindObject {
			return invalid("%s: '%s' must be an object", s.path, key)
		}
		for i := 1; i < len(v.kids); i += 2 {
			inner = append(inner, v.kids[i])
		}
	}
	for _, key := range []string{"anyOf", "allOf"} {
		v, ok := schema.get(key)
		if ok && (v.kind != kindArray || len(v.kids) == 0) {
			return invalid("%s: '%s' must be a list of schemas", s.path, key)
		}
		for _, option := range v.kids {
			if _, ref := option.get("$ref"); ref && key == "allOf" {
				return invalid("%s: 'allOf' with '$ref' is not supported", s.path)
			}
			inner = append(inner, option)
		}
	}
	if v, ok := schema.get("items"); ok {
		inner = append(inner, v)
	}
	for _, v := range inner {
		if err := s.walk(v); err != nil {
			return err
		}
	}
	return nil
}

func (s *subset) reference(schema node) *APIError {
	ref, ok := schema.get("$ref")
	if !ok {
		return nil
	}
	if !strings.HasPrefix(ref.str(), "#") {
		return invalid("%s: External schema references are not supported: %s", s.path, ref.raw)
	}
	target, ok := resolve(s.root, ref.str())
	if !ok {
		return invalid("%s: Schema reference %s cannot be resolved", s.path, ref.raw)
	}
	return s.walk(target)
}

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// resolve follows a local reference, such as #/$defs/item.
func resolve(root node, ref string) (node, bool) {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local || pointer != "" && pointer[0] != '/' {
		return node{}, false
	}
	if pointer == "" {
		return root, true
	}
	n := root
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = pointerEscapes.Replace(step)
		next, ok := n.get(step)
		if i, err := strconv.Atoi(step); n.kind == kindArray && err == nil && i >= 0 && i < len(n.kids) {
			next, ok = n.kids[i], true
		}
		if !ok {
			return node{}, false
		}
		n = next
	}
	return n, n.kind == kindObject
}
