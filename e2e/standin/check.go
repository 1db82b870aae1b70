package standin

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// bodyBytesMax is the size of the largest request body, 32 MB.
const bodyBytesMax = 33_554_432

// The two values of the anthropic-version header. The second one removed
// sampling, documents in assistant turns, and citations in user text.
const (
	version2023 = "2023-06-01"
	version2026 = "2026-10-21"
)

// Rule names one rule that can be relaxed, for tests whose subject is
// something else.
type Rule string

const (
	RulePrefill      Rule = "prefill"       // the last message may be the assistant's, on every model
	RuleFirstRole    Rule = "first_role"    // the first message may be the assistant's
	RuleForcedChoice Rule = "forced_choice" // every model takes tool_choice any and tool
	RuleSampling     Rule = "sampling"      // every model takes temperature, top_p and top_k
	RuleContext      Rule = "context"       // a prompt may be longer than the context window
)

// Check tells whether the Messages API would accept a request with these
// headers and this body, and returns its refusal otherwise. It never panics.
// The keys of header are canonical, as its Set and Add make them.
// The API's rules are those of the Messages reference; where that is silent
// the stricter reading counts. Rules named in relax do not apply.
func Check(header http.Header, body []byte, relax ...Rule) *APIError {
	_, err := read(header, body, relax)
	return err
}

// request is an accepted request.
type request struct {
	body    node
	model   *model
	version string
	relax   []Rule
}

func (r *request) relaxed(rule Rule) bool { return slices.Contains(r.relax, rule) }

func read(header http.Header, body []byte, relax []Rule) (*request, *APIError) {
	if len(body) > bodyBytesMax {
		return nil, tooLarge()
	}
	if err := checkHeader(header); err != nil {
		return nil, err
	}
	mediaType, _, err := mime.ParseMediaType(header.Get("content-type"))
	if err != nil || mediaType != "application/json" {
		return nil, invalid("content-type: must be application/json")
	}
	root, bad := parseJSON(body)
	if bad != nil {
		return nil, bad
	}
	r := &request{body: root, version: header.Get("anthropic-version"), relax: relax}
	if bad := r.check(); bad != nil {
		return nil, bad
	}
	return r, nil
}

// checkHeader checks what every endpoint demands of the headers.
func checkHeader(header http.Header) *APIError {
	if credential(header) == "" {
		return unauthorized("x-api-key header is required")
	}
	switch values := header.Values("anthropic-version"); {
	case len(values) == 0:
		return invalid("anthropic-version: header is required")
	case len(values) > 1 || values[0] != version2023 && values[0] != version2026:
		return invalid("anthropic-version: %q is not a valid version", strings.Join(values, ", "))
	}
	return nil
}

// credential returns the key that a request authenticates with: x-api-key
// wins over a bearer token.
func credential(header http.Header) string {
	if key := header.Get("x-api-key"); key != "" {
		return key
	}
	scheme, token, _ := strings.Cut(header.Get("authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// check applies the rules in the API's manner: first the shape of the whole
// body, then the model, then what depends on it or on several fields.
func (r *request) check() *APIError {
	if err := r.checkShape(); err != nil {
		return err
	}
	name := r.body.text("model")
	if r.model = findModel(name); r.model == nil {
		return notFound("model: " + name)
	}
	for _, rule := range []func() *APIError{
		r.checkMaxTokens, r.checkStops, r.checkSampling, r.checkThinking,
		r.checkTools, r.checkToolChoice, r.checkFormat, r.checkSystem,
		r.checkMessages, r.checkMedia, r.checkCacheMarks, r.checkLength,
	} {
		if err := rule(); err != nil {
			return err
		}
	}
	return nil
}

func (r *request) checkMaxTokens() *APIError {
	limit, _ := r.body.at("max_tokens").integer()
	if limit > int64(r.model.maxTokens) {
		return invalid("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s",
			limit, r.model.maxTokens, r.model.id)
	}
	if limit > 0 {
		return nil
	}
	// Zero only warms the cache, so nothing that shapes an output may stand
	// beside it.
	choice := r.body.at("tool_choice").text("type")
	switch {
	case r.body.at("stream").isTrue():
		return invalid("max_tokens: must be greater than 0 when stream is true")
	case r.body.at("thinking").text("type") == "enabled":
		return invalid("max_tokens: must be greater than thinking.budget_tokens")
	case r.body.at("output_config").has("format"):
		return invalid("max_tokens: must be greater than 0 when output_config.format is set")
	case choice == "any" || choice == "tool":
		return invalid("max_tokens: must be greater than 0 when tool_choice forces tool use")
	}
	return nil
}

func (r *request) checkStops() *APIError {
	for _, stop := range r.body.at("stop_sequences").kids {
		switch s := stop.str(); {
		case s == "":
			return invalid("stop_sequences: each stop sequence must be non-empty")
		case strings.TrimSpace(s) == "":
			return invalid("stop_sequences: each stop sequence must contain non-whitespace")
		}
	}
	return nil
}

// checkSampling applies the rules of temperature, top_p and top_k, which
// depend on the version, the model and whether the model thinks.
func (r *request) checkSampling() *APIError {
	if r.relaxed(RuleSampling) {
		return nil
	}
	for _, key := range []string{"temperature", "top_p", "top_k"} {
		v, sent := r.body.get(key)
		switch {
		case !sent:
			continue
		case r.version != version2023:
			return invalid("%s: Extra inputs are not permitted", key)
		case !r.model.sampling && !isSamplingDefault(key, v):
			return invalid("`%s` is deprecated for this model.", key)
		case r.thinks() && key == "top_p" && v.float() < 0.95:
			return invalid("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.")
		case r.thinks() && key != "top_p" && !isSamplingDefault(key, v):
			return invalid("`%s` may only be set to its default when thinking is enabled.", key)
		}
	}
	_, temperature := r.body.get("temperature")
	_, topP := r.body.get("top_p")
	if temperature && topP && r.model.sampling {
		return invalid("`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
	}
	return nil
}

// isSamplingDefault tells values that change nothing. top_k has no default
// that could be sent.
func isSamplingDefault(key string, v node) bool {
	return key != "top_k" && v.float() == 1
}
