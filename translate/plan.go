package translate

import (
	"strconv"
)

// Env is what the core may not find out itself about a request.
type Env struct {
	// Models is the model table; never nil.
	Models *Models
	// RefuseUnknown refuses models that the table does not have
	// (`unknown_models`).
	RefuseUnknown bool
	// AutoCache allows the automatic cache breakpoints: the plugin's `caching`,
	// and no `x-ezat-cache: off` from the client.
	AutoCache bool
	// SessionHeader is the client's x-ezat-session, which wins over
	// prompt_cache_key; empty when there is none.
	SessionHeader string
	// GatewayKey: the gateway adds a key of its own (`upstream.credentials`).
	GatewayKey bool
}

// Plan is every decision about one request; writing it decides nothing more.
type Plan struct {
	// Reply is what the answer needs once the body is gone.
	Reply Reply
	// Session is the value of x-ezat-session to send, fit for a header; empty
	// for none.
	Session string
	// Fetches are the images to download first; Resolve takes them.
	Fetches []Fetch

	images      []Image
	request     *Request
	model       string
	maxTokens   []byte
	digits      [20]byte // of a limit of ours
	thinking    bool
	effort      string
	temperature []byte
	topP        []byte
	choice      toolChoice
	markSystem  bool // automatic breakpoints: the last system block,
	markTools   bool // the last tool,
	markNewest  bool // the last block of the last turn
}

// Decide makes every decision that depends on the model and the surroundings. The
// Plan is good as long as the Request is.
// It refuses unknown models where the operator wants that, and names that no
// model can have: nothing but the prefix, or too long, they or their spelling, which
// every chunk of a stream repeats (404).
func Decide(r *Request, env *Env) (*Plan, *Error) {
	model, known := env.Models.Lookup(r.modelName)
	p := &r.parser.plan
	*p = Plan{
		request: r,
		model:   model.Upstream,
		choice:  r.choice,
		Fetches: r.fetches,
		Reply:   r.Reply(),
	}
	p.Reply.GatewayKey = env.GatewayKey
	if !known && env.RefuseUnknown || model.Upstream == "" || r.modelLong {
		return nil, modelNotFound(r.modelName)
	}
	p.decideLimit(&model)
	p.decideReasoning(&model)
	p.decideSampling(&model)
	p.decideCaching(&model, env)
	p.Session = env.SessionHeader
	if p.Session == "" {
		p.Session = headerValue(r.cacheKey)
	}
	return p, nil
}

// decideLimit: max_completion_tokens or max_tokens as sent, else 32,000 or the
// model's maximum if that is lower.
func (p *Plan) decideLimit(model *Model) {
	p.maxTokens = p.request.maxTokens
	if p.maxTokens == nil {
		p.maxTokens = strconv.AppendInt(p.digits[:0], int64(min(outputTokensDefault, model.MaxOutputTokens)), 10)
	}
}

// decideReasoning is the contract's table of efforts. Thinking is not requested
// when a tool is forced, nor from models that have no adaptive thinking; a model
// without effort levels gets neither (decision 22).
func (p *Plan) decideReasoning(model *Model) {
	if p.request.effort == "" || !model.Effort {
		return
	}
	p.effort = p.request.effort
	switch p.effort {
	case "none", "minimal":
		p.effort = "low"
	default:
		p.thinking = model.Thinking && !p.choice.forced()
	}
}

// decideSampling: only to models with sampling, only when thinking is off,
// temperature capped at 1, top_p only below 1, and of the two the temperature
// (decision 23).
func (p *Plan) decideSampling(model *Model) {
	if !model.Sampling || p.thinking {
		return
	}
	r := p.request
	switch {
	case r.temperature.raw != nil && r.temperature.value > 1:
		p.temperature = []byte("1")
	case r.temperature.raw != nil:
		p.temperature = r.temperature.raw
	case r.topP.raw != nil && r.topP.value < 1:
		p.topP = r.topP.raw
	}
}

// decideCaching sets the two automatic breakpoints when the client has set none
// of its own (contract, "Prompt caching"; decision 28).
func (p *Plan) decideCaching(model *Model, env *Env) {
	if !env.AutoCache || !model.Caching || p.request.marked {
		return
	}
	p.markSystem = len(p.request.system) > 0
	p.markTools = !p.markSystem && len(p.request.tools) > 0
	p.markNewest = true
}

// headerValue is text as a header can carry it: control bytes, bytes beyond
// ASCII, and white space at the ends are percent-encoded (decision 44).
func headerValue(text string) string {
	const digits = "0123456789ABCDEF"
	var value []byte
	for i := range len(text) {
		c := text[i]
		if c > ' ' && c < 0x7F || c == ' ' && i > 0 && i < len(text)-1 {
			value = append(value, c)
			continue
		}
		value = append(value, '%', digits[c>>4], digits[c&15])
	}
	return string(value)
}
