package standin

import "fmt"

// marksMax is the largest number of cache marks in a request.
const marksMax = 4

// mark is one place at which a request asks for its prefix to be cached.
type mark struct {
	path string
	ttl  string // 5m or 1h
}

// ttl returns the lifetime that a cache_control asks for.
func ttl(control node) string {
	if control.text("ttl") == "1h" {
		return "1h"
	}
	return "5m"
}

// segment is one cacheable piece of the prompt in the order in which the
// prompt is put together: tools, system, messages.
type segment struct {
	path  string
	role  string // tools, system, user or assistant
	block node
}

// segments lists the pieces. Blocks inside tool results come before the
// result that holds them.
func (r *request) segments() []segment {
	var found []segment
	for i, tool := range r.body.at("tools").kids {
		found = append(found, segment{at("tools", i), "tools", tool})
	}
	for i, block := range blocks(r.body.at("system")) {
		found = append(found, segment{at("system", i), "system", block})
	}
	for i, message := range r.body.at("messages").kids {
		for j, block := range blocks(message.at("content")) {
			path := fmt.Sprintf("messages.%d.content.%d", i, j)
			found = append(found, segment{path, message.text("role"), block})
		}
	}
	return found
}

// marks lists the cache marks in the order of the prompt. The one at the top
// of the request sits on the last block that can carry it.
func (r *request) marks() []mark {
	var found []mark
	for _, s := range r.segments() {
		if s.role == "user" && s.block.text("type") == "tool_result" {
			for i, inner := range blocks(s.block.at("content")) {
				if inner.has("cache_control") {
					found = append(found, mark{at(s.path+".tool_result.content", i), ttl(inner.at("cache_control"))})
				}
			}
		}
		if s.block.has("cache_control") {
			found = append(found, mark{s.path, ttl(s.block.at("cache_control"))})
		}
	}
	return found
}

func (r *request) checkCacheMarks() *APIError {
	found := r.marks()
	if top := r.body.at("cache_control"); top.kind == kindObject {
		if control := r.lastCacheable(); control.kind == kindObject && ttl(control) != ttl(top) {
			return invalid("Top-level cache_control has ttl='%s' but the target block already has cache_control with ttl='%s'", ttl(top), ttl(control))
		}
		found = append(found, mark{"cache_control", ttl(top)})
	}
	if len(found) > marksMax {
		return invalid("A maximum of %d blocks with cache_control may be provided. Found %d.", marksMax, len(found))
	}
	for i := 1; i < len(found); i++ {
		if found[i].ttl == "1h" && found[i-1].ttl == "5m" {
			return invalid("%s.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.", found[i].path)
		}
	}
	return nil
}

// lastCacheable returns the cache_control of the last block that can have
// one, which is where a mark at the top of the request sits.
func (r *request) lastCacheable() node {
	segments := r.segments()
	for i := len(segments) - 1; i >= 0; i-- {
		if cacheable(segments[i].block) {
			return segments[i].block.at("cache_control")
		}
	}
	return node{}
}

func cacheable(block node) bool {
	kind := block.text("type")
	return kind != "thinking" && kind != "redacted_thinking"
}
