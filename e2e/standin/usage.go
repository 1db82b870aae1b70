package standin

import (
	"container/list"
	"crypto/sha256"
	"hash"
	"sync"
)

// Token counts are made up but steady: four bytes of text are a token.
const (
	bytesPerToken    = 4
	tokensPerRequest = 8
	tokensPerRole    = 3
	tokensPerImage   = 1600 // when the size cannot be read
	pixelsPerToken   = 750
	bytesPerPDFToken = 64
)

func textTokens(n int) int { return (n + bytesPerToken - 1) / bytesPerToken }

func segmentTokens(s segment) int {
	if s.role == "tools" {
		return textTokens(len(s.block.raw))
	}
	return tokensPerRole + blockTokens(s.block)
}

func blockTokens(block node) int {
	switch block.text("type") {
	case "text":
		return textTokens(len(block.text("text")))
	case "image":
		return imageTokens(block.at("source"))
	case "document":
		return textTokens(len(block.at("source").raw)) / (bytesPerPDFToken / bytesPerToken)
	case "tool_result":
		sum := 0
		for _, inner := range blocks(block.at("content")) {
			sum += blockTokens(inner)
		}
		return sum
	case "tool_use":
		return textTokens(len(block.text("name")) + len(block.at("input").raw))
	}
	return textTokens(len(block.raw))
}

func imageTokens(source node) int {
	data, ok := decodeBase64(source.text("data"))
	if !ok {
		return tokensPerImage
	}
	width, height := imageSize(data)
	if width == 0 || height == 0 {
		return tokensPerImage
	}
	return min(width*height/pixelsPerToken+1, tokensPerImage)
}

// point is the state of the prompt after a segment.
type point struct {
	tokens int               // so far
	prefix [sha256.Size]byte // what the prompt is so far
	ttl    string            // "" unless the segment carries a cache mark
}

// points walks the prompt. What invalidates a cached prefix is part of it.
func (r *request) points() []point {
	config := r.body.at("output_config")
	sum := sha256.New()
	feed(sum, []byte(r.model.id), config.at("format").raw)
	var walked []point
	tokens, top := tokensPerRequest, r.body.at("cache_control")
	inMessages := false
	segments := r.segments()
	for _, s := range segments {
		if !inMessages && (s.role == "user" || s.role == "assistant") {
			inMessages = true
			feed(sum, r.body.at("tool_choice").raw, r.body.at("thinking").raw, config.at("effort").raw)
		}
		feed(sum, []byte(s.role))
		feedBlock(sum, s.block)
		tokens += segmentTokens(s)
		p := point{tokens: tokens, ttl: segmentTTL(s)}
		sum.Sum(p.prefix[:0])
		walked = append(walked, p)
	}
	for i := len(walked) - 1; i >= 0 && top.kind == kindObject; i-- {
		if cacheable(segments[i].block) {
			walked[i].ttl = ttl(top)
			break
		}
	}
	return walked
}

// segmentTTL returns the lifetime asked for by a segment's mark. A mark
// inside a tool result counts as one on the result.
func segmentTTL(s segment) string {
	if s.block.has("cache_control") {
		return ttl(s.block.at("cache_control"))
	}
	if s.block.text("type") != "tool_result" {
		return ""
	}
	for _, inner := range blocks(s.block.at("content")) {
		if inner.has("cache_control") {
			return ttl(inner.at("cache_control"))
		}
	}
	return ""
}

// feed hashes pieces so that their borders count.
func feed(sum hash.Hash, pieces ...[]byte) {
	for _, piece := range pieces {
		sum.Write(piece)
		sum.Write([]byte{0})
	}
}

// feedBlock hashes a block without its cache marks, which are no part of the
// prompt.
func feedBlock(sum hash.Hash, block node) {
	for i := 0; i < len(block.kids); i += 2 {
		key, value := block.kids[i], block.kids[i+1]
		if key.str() == "cache_control" {
			continue
		}
		feed(sum, key.raw)
		if key.str() != "content" || value.kind != kindArray {
			feed(sum, value.raw)
			continue
		}
		for _, inner := range value.kids {
			feedBlock(sum, inner)
		}
	}
}

// promptTokens counts the whole input.
func (r *request) promptTokens() int {
	tokens := tokensPerRequest
	for _, s := range r.segments() {
		tokens += segmentTokens(s)
	}
	return tokens
}

func (r *request) checkLength() *APIError {
	if tokens := r.promptTokens(); tokens > r.model.context && !r.relaxed(RuleContext) {
		return invalid("prompt is too long: %d tokens > %d maximum", tokens, r.model.context)
	}
	return nil
}

// usage is the token count of one answer. Input is what was neither read
// from the cache nor written to it.
type usage struct {
	input, read, write5m, write1h int
	output, thinking              int
}

func (u usage) written() int { return u.write5m + u.write1h }

// lookback is how many blocks before a mark a cached prefix is looked for.
const lookback = 20

// prefixesMax bounds the memory of cached prefixes.
const prefixesMax = 4096

// promptCache remembers which prefixes have been written. There is no clock:
// entries leave only when newer ones push them out.
type promptCache struct {
	mu      sync.Mutex
	entries map[[sha256.Size]byte]*list.Element
	order   list.List // oldest use first
}

// account splits a request's input into read, written and plain tokens, and
// remembers what it writes.
func (c *promptCache) account(r *request) usage {
	points := r.points()
	total := tokensPerRequest
	if len(points) > 0 {
		total = points[len(points)-1].tokens
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var marked []int
	u := usage{}
	for i, p := range points {
		if p.ttl == "" || p.tokens < r.model.cacheMin {
			continue
		}
		marked = append(marked, i)
		u.read = max(u.read, c.longest(points[max(0, i-lookback):i+1]))
	}
	done := u.read
	for _, i := range marked {
		fresh := max(0, points[i].tokens-done)
		if points[i].ttl == "1h" {
			u.write1h += fresh
		} else {
			u.write5m += fresh
		}
		done += fresh
		c.remember(points[i].prefix)
	}
	u.input = total - done
	return u
}

// longest returns the tokens of the longest known prefix among points.
func (c *promptCache) longest(points []point) int {
	for i := len(points) - 1; i >= 0; i-- {
		if _, ok := c.entries[points[i].prefix]; ok {
			return points[i].tokens
		}
	}
	return 0
}

func (c *promptCache) remember(prefix [sha256.Size]byte) {
	if element, ok := c.entries[prefix]; ok {
		c.order.MoveToBack(element)
		return
	}
	if c.entries == nil {
		c.entries = map[[sha256.Size]byte]*list.Element{}
	}
	c.entries[prefix] = c.order.PushBack(prefix)
	if c.order.Len() > prefixesMax {
		oldest := c.order.Remove(c.order.Front()).([sha256.Size]byte)
		delete(c.entries, oldest)
	}
}
