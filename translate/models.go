package translate

import "strings"

// Model is what the filter knows of a model (operator's contract, `models`).
type Model struct {
	// Upstream is the name sent upstream.
	Upstream string
	// MaxOutputTokens is the model's largest output limit.
	MaxOutputTokens int
	// Sampling: the model takes temperature and top_p. Caching: it takes cache
	// breakpoints. Thinking: it takes adaptive thinking.
	Sampling, Caching, Thinking bool
	// Effort tells whether the model has effort levels at all: a level that it
	// lacks goes up all the same (decision 22).
	Effort bool
}

// ModelEntry is one entry of the plugin's `models`: nil keeps the built-in
// value.
type ModelEntry struct {
	Name                        string
	Upstream                    *string
	MaxOutputTokens             *int
	Sampling, Caching, Thinking *bool
	Effort                      *[]string
}

// Models is the table of models: what the operator configured over what is
// built in. It never changes once made.
type Models struct {
	prefix     string
	names      []string // as configured, in order
	configured map[string]Model
}

// newest stands for every model that the table does not have: it counts as one
// of the newest family.
var newest = Model{MaxOutputTokens: 128_000, Caching: true, Thinking: true, Effort: true}

// builtIn is the table of the reference on Anthropic's API, by family name.
var builtIn = map[string]Model{
	"claude-fable-5-2":  newest,
	"claude-fable-5-1":  newest,
	"claude-fable-5":    newest,
	"claude-mythos-5-2": newest,
	"claude-mythos-5-1": newest,
	"claude-mythos-5":   newest,
	"claude-opus-5-5":   newest,
	"claude-sonnet-5-5": newest,
	"claude-haiku-5-5":  newest,
	"claude-opus-5":     newest,
	"claude-sonnet-5":   newest,
	"claude-opus-4-8":   newest,
	"claude-opus-4-7":   newest,
	"claude-opus-4-6":   {MaxOutputTokens: 128_000, Sampling: true, Caching: true, Thinking: true, Effort: true},
	"claude-sonnet-4-6": {MaxOutputTokens: 128_000, Sampling: true, Caching: true, Thinking: true, Effort: true},
	"claude-opus-4-5":   {MaxOutputTokens: 64_000, Sampling: true, Caching: true, Effort: true},
	"claude-sonnet-4-5": {MaxOutputTokens: 64_000, Sampling: true, Caching: true},
	"claude-haiku-4-5":  {MaxOutputTokens: 64_000, Sampling: true, Caching: true},
}

// NewModels makes the table. prefix is the plugin's `upstream.model_prefix`;
// where entries share a name the last one counts.
func NewModels(prefix string, entries []ModelEntry) *Models {
	m := &Models{prefix: prefix, configured: make(map[string]Model, len(entries))}
	for _, e := range entries {
		if _, again := m.configured[e.Name]; !again {
			m.names = append(m.names, e.Name)
		}
		model, _ := m.builtIn(e.Name)
		m.configured[e.Name] = e.over(model)
	}
	return m
}

// over lays the entry's values over those of model.
func (e *ModelEntry) over(model Model) Model {
	if e.Upstream != nil {
		model.Upstream = *e.Upstream
	}
	if e.MaxOutputTokens != nil {
		model.MaxOutputTokens = *e.MaxOutputTokens
	}
	if e.Sampling != nil {
		model.Sampling = *e.Sampling
	}
	if e.Caching != nil {
		model.Caching = *e.Caching
	}
	if e.Thinking != nil {
		model.Thinking = *e.Thinking
	}
	if e.Effort != nil {
		model.Effort = len(*e.Effort) > 0
	}
	return model
}

// Lookup finds a model by the name that the client sent: exactly, then without
// the prefix, then a dated id (-20261001) by its family. known is false for a
// name that neither the configuration nor the built-in table has; the model then
// counts as one of the newest.
func (m *Models) Lookup(name string) (model Model, known bool) {
	if len(m.configured) == 0 {
		return m.builtIn(name)
	}
	bare := strings.TrimPrefix(name, m.prefix)
	for _, candidate := range [...]string{name, bare, m.prefix + bare} {
		if model, ok := m.configured[candidate]; ok {
			return model, true
		}
	}
	if family := undated(bare); family != bare {
		for _, candidate := range [...]string{undated(name), family, m.prefix + family} {
			if model, ok := m.configured[candidate]; ok {
				model.Upstream = bare // the family's abilities, the client's own version
				return model, true
			}
		}
	}
	return m.builtIn(name)
}

// builtIn is Lookup in the built-in table alone.
func (m *Models) builtIn(name string) (model Model, known bool) {
	bare := strings.TrimPrefix(name, m.prefix)
	model, known = builtIn[bare]
	if !known {
		model, known = builtIn[undated(bare)]
	}
	if !known {
		model = newest
	}
	model.Upstream = bare
	return model, known
}

// undated is a model's name without the date at its end.
func undated(name string) string {
	const date = len("-20261001")
	if len(name) <= date || name[len(name)-date] != '-' {
		return name
	}
	for _, c := range []byte(name[len(name)-date+1:]) {
		if c-'0' > 9 {
			return name
		}
	}
	return name[:len(name)-date]
}
