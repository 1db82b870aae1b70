package standin

import (
	"fmt"
	"regexp"
)

var toolNamePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

// strictToolsMax is the largest number of tools with strict: true.
const strictToolsMax = 20

func (r *request) checkTools() *APIError {
	names := map[string]bool{}
	strict := &subset{}
	strictTools := 0
	for i, tool := range r.body.at("tools").kids {
		path := fmt.Sprintf("tools.%d.custom", i)
		if err := checkToolName(path+".name", tool.text("name")); err != nil {
			return err
		}
		if names[tool.text("name")] {
			return invalid("tools: Tool names must be unique.")
		}
		names[tool.text("name")] = true
		schema := tool.at("input_schema")
		if err := checkInputSchema(path+".input_schema", schema); err != nil {
			return err
		}
		if !tool.at("strict").isTrue() {
			continue
		}
		strictTools++
		if err := strict.check(path+".input_schema", schema); err != nil {
			return err
		}
	}
	if strictTools > strictToolsMax {
		return invalid("tools: Too many strict tools: %d > %d.", strictTools, strictToolsMax)
	}
	return r.checkOutputSchema(strict)
}

func checkToolName(path, name string) *APIError {
	switch {
	case name == "":
		return invalid("%s: String should have at least 1 character", path)
	case len(name) > 128:
		return invalid("%s: String should have at most 128 characters", path)
	case !toolNamePattern.MatchString(name):
		return invalid("%s: String should match pattern '%s'", path, toolNamePattern)
	}
	return nil
}

func checkInputSchema(path string, schema node) *APIError {
	kind, ok := schema.get("type")
	if !ok {
		return invalid("%s.type: Field required", path)
	}
	if kind.str() != "object" {
		return invalid("%s.type: Input should be 'object'", path)
	}
	for _, key := range []string{"oneOf", "allOf", "anyOf"} {
		if _, ok := schema.get(key); ok {
			return invalid("%s: input_schema does not support oneOf, allOf, or anyOf at the top level", path)
		}
	}
	if !validSchema(schema, true) {
		return invalid("%s: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use at https://docs.claude.com/en/docs/tool-use.", path)
	}
	return nil
}

func (r *request) checkToolChoice() *APIError {
	choice, ok := r.body.get("tool_choice")
	if !ok {
		return nil
	}
	tools := r.body.at("tools").kids
	if len(tools) == 0 {
		return invalid("tool_choice: tool_choice may only be specified while providing tools")
	}
	if !r.forced() {
		return nil
	}
	if r.body.at("thinking").text("type") == "enabled" {
		return invalid("Thinking may not be enabled when tool_choice forces tool use.")
	}
	if !r.model.forced && !r.relaxed(RuleForcedChoice) {
		return invalid("tool_choice: type \"tool\" and \"any\" are not supported for this model.")
	}
	if name, named := choice.get("name"); named && !hasTool(tools, name.str()) {
		return invalid("tool_choice.name: Tool '%s' not found in provided tools", name.str())
	}
	return nil
}

// forced tells whether the model must call a tool.
func (r *request) forced() bool {
	kind := r.body.at("tool_choice").text("type")
	return kind == "any" || kind == "tool"
}

func hasTool(tools []node, name string) bool {
	for _, tool := range tools {
		if tool.text("name") == name {
			return true
		}
	}
	return false
}

// checkOutputSchema checks output_config.format; its schema counts together
// with those of the strict tools.
func (r *request) checkOutputSchema(strict *subset) *APIError {
	format := r.body.at("output_config").at("format")
	if format.kind == kindObject {
		if err := strict.check("output_config.format.schema", format.at("schema")); err != nil {
			return err
		}
	}
	if strict.optionals > optionalsMax || strict.unions > unionsMax {
		return invalid("Schema is too complex for compilation.")
	}
	return nil
}

// checkFormat applies what structured output cannot be combined with.
func (r *request) checkFormat() *APIError {
	if !r.body.at("output_config").has("format") {
		return nil
	}
	messages := r.body.at("messages").kids
	if messages[len(messages)-1].text("role") == "assistant" {
		return invalid("output_config.format: structured outputs are incompatible with assistant message prefill")
	}
	for _, message := range messages {
		for _, block := range message.at("content").kids {
			if block.at("citations").at("enabled").isTrue() {
				return invalid("output_config.format: structured outputs are incompatible with citations")
			}
		}
	}
	return nil
}
