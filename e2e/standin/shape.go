package standin

import "regexp"

// messagesMax is the longest list of messages.
const messagesMax = 100_000

// userIDMax is the longest metadata.user_id.
const userIDMax = 256

// checkShape checks names and types of everything that the API owns; schemas
// and tool inputs are only checked to be objects.
func (r *request) checkShape() *APIError {
	return object("", r.body,
		need("model", isString),
		need("max_tokens", tokens),
		need("messages", messageList),
		opt("system", textOrBlocks(textBlock)),
		opt("stream", isBool),
		opt("stop_sequences", listOf(isString)),
		opt("temperature", between(0, 1)),
		opt("top_p", between(0, 1)),
		opt("top_k", tokens),
		opt("thinking", thinkingShape),
		opt("output_config", outputConfigShape),
		opt("tools", listOf(toolShape)),
		opt("tool_choice", toolChoiceShape),
		opt("metadata", metadataShape),
		opt("service_tier", oneOf("auto", "standard_only")),
		maybe("cache_control", cacheControl),
		maybe("speed", oneOf("standard", "fast")),
		maybe("inference_geo", isString),
		maybe("container", textOrObject),
		maybe("diagnostics", diagnosticsShape),
		opt("user_profile_id", isString),
	)
}

func tokens(path string, v node) *APIError {
	n, ok := v.integer()
	if !ok {
		return invalid("%s: Input should be a valid integer", path)
	}
	if n < 0 {
		return invalid("%s: Input should be greater than or equal to 0", path)
	}
	return nil
}

func metadataShape(path string, v node) *APIError {
	return object(path, v, maybe("user_id", func(path string, v node) *APIError {
		if err := isString(path, v); err != nil {
			return err
		}
		if len([]rune(v.str())) > userIDMax {
			return invalid("%s: String should have at most %d characters", path, userIDMax)
		}
		return nil
	}))
}

func diagnosticsShape(path string, v node) *APIError {
	return object(path, v, maybe("previous_message_id", isString))
}

func textOrObject(path string, v node) *APIError {
	if v.kind == kindObject {
		return nil
	}
	return isString(path, v)
}

func thinkingShape(path string, v node) *APIError {
	display := maybe("display", oneOf("summarized", "omitted"))
	kind := need("type", isString)
	return tagged(path, v, map[string]check{
		"adaptive": variant(kind, display),
		"enabled": variant(kind, display, need("budget_tokens", func(path string, v node) *APIError {
			n, ok := v.integer()
			if !ok {
				return invalid("%s: Input should be a valid integer", path)
			}
			if n < budgetMin {
				return invalid("%s: Input should be greater than or equal to %d", path, budgetMin)
			}
			return nil
		})),
		"disabled":      variant(kind),
		"between_tools": variant(kind),
	})
}

func variant(fields ...field) check {
	return func(path string, v node) *APIError { return object(path, v, fields...) }
}

func outputConfigShape(path string, v node) *APIError {
	return object(path, v,
		maybe("effort", oneOf(levelsAll...)),
		maybe("format", variant(need("type", oneOf("json_schema")), need("schema", isObject))),
	)
}

var cacheControls = map[string]check{
	"ephemeral": variant(need("type", isString), opt("ttl", oneOf("5m", "1h"))),
}

func cacheControl(path string, v node) *APIError { return tagged(path, v, cacheControls) }

func toolShape(path string, v node) *APIError {
	if kind := v.text("type"); kind != "" && kind != "custom" {
		return invalid("%s: server and client tools of type '%s' are not available on this stand-in", path, kind)
	}
	return object(path+".custom", v,
		need("name", isString),
		need("input_schema", isObject),
		opt("description", isString),
		maybe("type", oneOf("custom")),
		opt("strict", isBool),
		maybe("cache_control", cacheControl),
		maybe("eager_input_streaming", isBool),
		opt("defer_loading", isBool),
		opt("input_examples", listOf(isObject)),
		opt("allowed_callers", listOf(oneOf("direct", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521"))),
	)
}

func toolChoiceShape(path string, v node) *APIError {
	kind, single := need("type", isString), opt("disable_parallel_tool_use", isBool)
	return tagged(path, v, map[string]check{
		"auto": variant(kind, single),
		"any":  variant(kind, single),
		"tool": variant(kind, single, need("name", isString)),
		"none": variant(kind),
	})
}

func messageList(path string, v node) *APIError {
	if err := isArray(path, v); err != nil {
		return err
	}
	if len(v.kids) == 0 {
		return invalid("messages: at least one message is required")
	}
	if len(v.kids) > messagesMax {
		return invalid("messages: List should have at most %d items after validation, not %d", messagesMax, len(v.kids))
	}
	return listOf(messageShape)(path, v)
}

func messageShape(path string, v node) *APIError {
	blocks := anyOf(userBlocks)
	switch role := v.at("role"); {
	case v.kind != kindObject:
		return isObject(path, v)
	case role.str() == "system":
		return invalid("messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.")
	case role.str() == "assistant":
		blocks = anyOf(assistantBlocks)
	}
	return object(path, v, need("role", oneOf("user", "assistant")), need("content", textOrBlocks(blocks)))
}

// textOrBlocks accepts a string, which stands for one text block, or a list.
func textOrBlocks(block check) check {
	return func(path string, v node) *APIError {
		if v.kind == kindString {
			return nil
		}
		if v.kind != kindArray {
			return invalid("%s: Input should be a valid string or a valid array", path)
		}
		return listOf(block)(path, v)
	}
}

// The blocks that a request may hold, apart from those of server tools,
// which the stand-in does not have.
var (
	userBlocks = map[string]check{
		"text": textBlock, "image": imageBlock, "document": documentBlock,
		"search_result": searchResultBlock, "tool_result": toolResultBlock,
		"tool_use":          elsewhere("tool_use", "assistant"),
		"thinking":          elsewhere("thinking", "assistant"),
		"redacted_thinking": elsewhere("redacted_thinking", "assistant"),
	}
	assistantBlocks = map[string]check{
		"text": textBlock, "document": documentBlock, "tool_use": toolUseBlock,
		"thinking": thinkingBlock, "redacted_thinking": redactedThinkingBlock,
		"image":         elsewhere("image", "user"),
		"search_result": elsewhere("search_result", "user"),
		"tool_result":   elsewhere("tool_result", "user"),
	}
	resultBlocks = map[string]check{
		"text": textBlock, "image": imageBlock, "document": documentBlock, "search_result": searchResultBlock,
	}
	documentBlocks = map[string]check{"text": textBlock, "image": imageBlock}
)

func anyOf(variants map[string]check) check {
	return func(path string, v node) *APIError { return tagged(path, v, variants) }
}

func elsewhere(block, role string) check {
	return func(path string, _ node) *APIError {
		return invalid("%s: `%s` blocks can only be in `%s` messages", path, block, role)
	}
}

// isType checks the type of a block in a place that takes only this one.
func isType(name string) field { return need("type", oneOf(name)) }

func textBlock(path string, v node) *APIError {
	return object(path, v,
		isType("text"), need("text", isString),
		maybe("cache_control", cacheControl), maybe("citations", listOf(isObject)))
}

func imageBlock(path string, v node) *APIError {
	return object(path+".image", v,
		isType("image"), need("source", anyOf(imageSources)), maybe("cache_control", cacheControl),
		maybe("transformations", variant(opt("oversized_image", oneOf("downsize", "error")))))
}

func documentBlock(path string, v node) *APIError {
	return object(path+".document", v,
		isType("document"), need("source", anyOf(documentSources)), maybe("cache_control", cacheControl),
		maybe("title", isString), maybe("context", isString), maybe("citations", citationsShape))
}

func searchResultBlock(path string, v node) *APIError {
	return object(path+".search_result", v,
		isType("search_result"), need("source", isString), need("title", isString),
		need("content", listOf(textBlock)),
		maybe("cache_control", cacheControl), opt("citations", citationsShape))
}

func citationsShape(path string, v node) *APIError {
	return object(path, v, opt("enabled", isBool))
}

var idPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func isID(path string, v node) *APIError {
	if err := isString(path, v); err != nil {
		return err
	}
	if !idPattern.MatchString(v.str()) {
		return invalid("%s: String should match pattern '%s'", path, idPattern)
	}
	return nil
}

func toolUseBlock(path string, v node) *APIError {
	return object(path+".tool_use", v,
		isType("tool_use"), need("id", isID), need("name", isString), need("input", isObject),
		maybe("cache_control", cacheControl), maybe("toolset_name", isString),
		opt("caller", variant(need("type", oneOf("direct")))))
}

func toolResultBlock(path string, v node) *APIError {
	return object(path+".tool_result", v,
		isType("tool_result"), need("tool_use_id", isID),
		opt("content", textOrBlocks(anyOf(resultBlocks))), opt("is_error", isBool),
		maybe("cache_control", cacheControl), maybe("toolset_name", isString))
}

func thinkingBlock(path string, v node) *APIError {
	return object(path+".thinking", v, isType("thinking"), need("thinking", isString), need("signature", isString))
}

func redactedThinkingBlock(path string, v node) *APIError {
	return object(path+".redacted_thinking", v, isType("redacted_thinking"), need("data", isString))
}

var (
	imageSources = map[string]check{
		"base64": base64Source("image/jpeg", "image/png", "image/gif", "image/webp"),
		"url":    urlSource,
		"file":   fileSource,
	}
	documentSources = map[string]check{
		"base64": base64Source("application/pdf"),
		"text": func(path string, v node) *APIError {
			return object(path+".text", v, need("type", isString), need("data", isString),
				need("media_type", oneOf("text/plain")))
		},
		"content": func(path string, v node) *APIError {
			return object(path+".content", v, need("type", isString), need("content", textOrBlocks(anyOf(documentBlocks))))
		},
		"url":  urlSource,
		"file": fileSource,
	}
)

func base64Source(mediaTypes ...string) check {
	return func(path string, v node) *APIError {
		return object(path+".base64", v, need("type", isString), need("data", isString),
			need("media_type", oneOf(mediaTypes...)))
	}
}

func urlSource(path string, v node) *APIError {
	return object(path+".url", v, need("type", isString), need("url", isString))
}

func fileSource(path string, v node) *APIError {
	return object(path+".file", v, need("type", isString), need("file_id", isString))
}
