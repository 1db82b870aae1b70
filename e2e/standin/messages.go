package standin

import (
	"fmt"
	"strings"
)

// word makes the node of a string literal that needs no escapes.
func word(s string) node { return node{kind: kindString, raw: []byte(`"` + s + `"`)} }

// textNode makes the text block that a string content stands for.
func textNode(text node) node {
	return node{kind: kindObject, kids: []node{word("type"), word("text"), word("text"), text}}
}

// blocks returns the content blocks of a message, a tool result or the
// system prompt.
func blocks(content node) []node {
	if content.kind == kindString {
		return []node{textNode(content)}
	}
	return content.kids
}

func (r *request) checkSystem() *APIError {
	system, ok := r.body.get("system")
	if !ok {
		return nil
	}
	return checkTexts("system", "system", blocks(system))
}

// checkTexts applies the rules of emptiness: no empty text block, and no
// content whose only text is white space. place leads to the list of blocks.
func checkTexts(subject, place string, content []node) *APIError {
	texts, filled := 0, 0
	for i, block := range content {
		if block.text("type") != "text" {
			continue
		}
		text := block.text("text")
		if text == "" && block.has("cache_control") {
			return invalid("%s.%d.text: cache_control cannot be set for empty text blocks", place, i)
		}
		if text == "" {
			return invalid("%s: text content blocks must be non-empty", subject)
		}
		if texts++; strings.TrimSpace(text) != "" {
			filled++
		}
	}
	if texts > 0 && filled == 0 {
		return invalid("%s: text content blocks must contain non-whitespace text", subject)
	}
	return nil
}

func (r *request) checkMessages() *APIError {
	messages := r.body.at("messages").kids
	if messages[0].text("role") != "user" && !r.relaxed(RuleFirstRole) {
		return invalid("messages: first message must use the \"user\" role")
	}
	ids := map[string]bool{}
	for i, message := range messages {
		last := i == len(messages)-1
		if err := checkContent(i, message, last); err != nil {
			return err
		}
		if err := checkCalls(i, messages, ids); err != nil {
			return err
		}
		if err := checkResults(i, messages); err != nil {
			return err
		}
		if err := r.checkVersion(i, message); err != nil {
			return err
		}
	}
	if err := r.checkPrefill(messages); err != nil {
		return err
	}
	return r.checkHistoryThinking(messages)
}

func checkContent(i int, message node, last bool) *APIError {
	content := message.at("content")
	empty := len(content.kids) == 0 && content.str() == ""
	if empty && last && message.text("role") == "assistant" {
		return nil
	}
	if empty {
		return invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
	}
	place := fmt.Sprintf("messages.%d.content", i)
	if err := checkTexts("messages", place, blocks(content)); err != nil {
		return err
	}
	for j, block := range blocks(content) {
		if block.text("type") != "tool_result" {
			continue
		}
		inner := block.at("content")
		if inner.kind != kindArray {
			continue // absent and "" are both fine
		}
		if err := checkInnerTexts(fmt.Sprintf("%s.%d.tool_result.content", place, j), inner.kids); err != nil {
			return err
		}
	}
	return nil
}

// checkInnerTexts refuses empty text blocks in a tool result. White space is
// what a tool printed, and passes.
func checkInnerTexts(place string, content []node) *APIError {
	for i, block := range content {
		if block.text("type") != "text" || block.text("text") != "" {
			continue
		}
		if block.has("cache_control") {
			return invalid("%s.%d.text: cache_control cannot be set for empty text blocks", place, i)
		}
		return invalid("messages: text content blocks must be non-empty")
	}
	return nil
}

// checkCalls demands unique ids of the calls in message i, and that the next
// message begins with their results.
func checkCalls(i int, messages []node, ids map[string]bool) *APIError {
	answered := map[string]bool{}
	if i+1 < len(messages) && messages[i+1].text("role") == "user" {
		for _, block := range blocks(messages[i+1].at("content")) {
			if block.text("type") != "tool_result" {
				break
			}
			answered[block.text("tool_use_id")] = true
		}
	}
	var missing []string
	for j, block := range blocks(messages[i].at("content")) {
		if block.text("type") != "tool_use" {
			continue
		}
		path, id := fmt.Sprintf("messages.%d.content.%d", i, j), block.text("id")
		if ids[id] {
			return invalid("%s: `tool_use` ids must be unique", path)
		}
		ids[id] = true
		if name := block.text("name"); name == "" {
			return invalid("%s.tool_use.name: String should have at least 1 character", path)
		}
		if !answered[id] {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
			i, strings.Join(missing, ", "))
	}
	return nil
}

// checkResults demands that each result in message i answers a call of the
// message before it, once.
func checkResults(i int, messages []node) *APIError {
	calls := map[string]bool{}
	if i > 0 {
		for _, block := range blocks(messages[i-1].at("content")) {
			if block.text("type") == "tool_use" {
				calls[block.text("id")] = true
			}
		}
	}
	seen := map[string]bool{}
	for j, block := range blocks(messages[i].at("content")) {
		if block.text("type") != "tool_result" {
			continue
		}
		id := block.text("tool_use_id")
		if !calls[id] {
			return invalid("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, id)
		}
		if seen[id] {
			return invalid("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", i, j, id)
		}
		seen[id] = true
	}
	return nil
}

// checkVersion applies what version 2026-10-21 removed from messages.
func (r *request) checkVersion(i int, message node) *APIError {
	if r.version != version2026 {
		return nil
	}
	assistant := message.text("role") == "assistant"
	for j, block := range blocks(message.at("content")) {
		path := fmt.Sprintf("messages.%d.content.%d", i, j)
		if assistant && block.text("type") == "document" {
			return invalid("%s: `document` blocks can only be in `user` messages", path)
		}
		if !assistant && block.text("type") == "text" && len(block.at("citations").kids) > 0 {
			return invalid("%s.text.citations: citations are not permitted in `user` messages", path)
		}
	}
	return nil
}

// checkPrefill applies the rules of a conversation that ends with the
// beginning of an answer.
func (r *request) checkPrefill(messages []node) *APIError {
	last := messages[len(messages)-1]
	if last.text("role") != "assistant" {
		return nil
	}
	if !r.model.prefill() && !r.relaxed(RulePrefill) {
		return invalid("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	content := blocks(last.at("content"))
	if len(content) == 0 {
		return nil
	}
	text := content[len(content)-1].text("text")
	if strings.TrimRight(text, " \t\r\n") != text {
		return invalid("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}

// checkHistoryThinking demands, with a thinking budget, the thinking that
// led to the answer which the model is to continue.
func (r *request) checkHistoryThinking(messages []node) *APIError {
	if r.body.at("thinking").text("type") != "enabled" {
		return nil
	}
	i := len(messages) - 1
	if i > 0 && holds(messages[i], "tool_result") {
		i--
	}
	if messages[i].text("role") != "assistant" {
		return nil
	}
	content := blocks(messages[i].at("content"))
	if len(content) == 0 {
		return nil
	}
	kind := content[0].text("type")
	if kind == "thinking" || kind == "redacted_thinking" {
		return nil
	}
	return invalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`.", i, kind)
}

func holds(message node, kind string) bool {
	for _, block := range blocks(message.at("content")) {
		if block.text("type") == kind {
			return true
		}
	}
	return false
}
