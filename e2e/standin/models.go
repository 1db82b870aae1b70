package standin

import (
	"regexp"
	"slices"
)

// model is one row of the API's table of models.
type model struct {
	id          string
	displayName string
	created     string   // RFC 3339
	lifecycle   string   // active, deprecated, retired
	line        string   // haiku, sonnet, opus, fable, mythos
	context     int      // tokens of input at most
	maxTokens   int      // tokens of output at most
	thinks      bool     // thinks when the request does not say
	thinking    []string // accepted thinking.type
	offUpTo     string   // highest effort beside disabled or between_tools, "" for any
	effort      []string // accepted levels, lowest first; none: the field is refused
	sampling    bool     // takes temperature, top_p, top_k (2023-06-01 only)
	forced      bool     // takes tool_choice any and tool
	cacheMin    int      // shortest prefix that is cached, in tokens
	summarized  bool     // thinking.display defaults to summarized, else omitted
}

var (
	levelsAll    = []string{"low", "medium", "high", "xhigh", "max"}
	levelsNoX    = []string{"low", "medium", "high", "max"}
	levelsToHigh = []string{"low", "medium", "high"}
	modesAlways  = []string{"adaptive"}
	modesBetween = []string{"adaptive", "between_tools"}
	modesOff     = []string{"adaptive", "disabled"}
	modesAll     = []string{"adaptive", "enabled", "disabled"}
	modesBudget  = []string{"enabled", "disabled"}
)

// models is newest first, the order of GET /v1/models. The Fable 5 and
// Mythos 5 rows are unclear about forced choices; refusing is the stricter
// reading.
var models = []model{
	{id: "claude-fable-5-2", displayName: "Claude Fable 5.2", created: "2026-11-16T00:00:00Z", lifecycle: "active", line: "fable", context: 1_000_000, maxTokens: 128_000, thinks: true, thinking: modesAlways, effort: levelsAll, cacheMin: 512},
	{id: "claude-mythos-5-2", displayName: "Claude Mythos 5.2", created: "2026-11-16T00:00:00Z", lifecycle: "active", line: "mythos", context: 1_000_000, maxTokens: 128_000, thinks: true, thinking: modesAlways, effort: levelsAll, cacheMin: 512},
	{id: "claude-haiku-5-5", displayName: "Claude Haiku 5.5", created: "2026-10-19T00:00:00Z", lifecycle: "active", line: "haiku", context: 1_000_000, maxTokens: 128_000, thinks: true, thinking: modesOff, offUpTo: "high", effort: levelsAll, forced: true, cacheMin: 512},
	{id: "claude-sonnet-5-5", displayName: "Claude Sonnet 5.5", created: "2026-10-01T00:00:00Z", lifecycle: "active", line: "sonnet", context: 1_000_000, maxTokens: 128_000, thinks: true, thinking: modesBetween, offUpTo: "high", effort: levelsAll, cacheMin: 512},
	{id: "claude-fable-5-1", displayName: "Claude Fable 5.1", created: "2026-09-14T00:00:00Z", lifecycle: "active", line: "fable", context: 1_000_000, maxTokens: 128_000, thinks: true, thinking: modesAlways, effort: levelsAll, cacheMin: 512},
	{id: "claude-opus-5-5", displayName: "Claude Opus 5.5", created: "2026-09-14T00:00:00Z", lifecycle: "active", line: "opus", context: 1_000_000, maxTokens: 128_000, thinks: true, thinking: modesAlways, effort: levelsAll, cacheMin: 512},
	{id: "claude-mythos-5-1", displayName: "Claude Mythos 5.1", created: "2026-09-14T00:00:00Z", lifecycle: "active", line: "mythos", context: 1_000_000, maxTokens: 128_000, thinks: true, thinking: modesAlways, effort: levelsAll, cacheMin: 512},
	{id: "claude-sonnet-5", displayName: "Claude Sonnet 5", created: "2026-07-06T00:00:00Z", lifecycle: "active", line: "sonnet", context: 1_000_000, maxTokens: 128_000, thinks: true, thinking: modesOff, effort: levelsAll, forced: true, cacheMin: 1024},
	{id: "claude-fable-5", displayName: "Claude Fable 5", created: "2026-06-08T00:00:00Z", lifecycle: "active", line: "fable", context: 1_000_000, maxTokens: 128_000, thinks: true, thinking: modesAlways, effort: levelsAll, cacheMin: 512},
	{id: "claude-mythos-5", displayName: "Claude Mythos 5", created: "2026-06-08T00:00:00Z", lifecycle: "active", line: "mythos", context: 1_000_000, maxTokens: 128_000, thinks: true, thinking: modesAlways, effort: levelsAll, cacheMin: 512},
	{id: "claude-opus-5", displayName: "Claude Opus 5", created: "2026-06-08T00:00:00Z", lifecycle: "active", line: "opus", context: 1_000_000, maxTokens: 128_000, thinks: true, thinking: modesOff, offUpTo: "high", effort: levelsAll, forced: true, cacheMin: 512},
	{id: "claude-opus-4-8", displayName: "Claude Opus 4.8", created: "2026-05-11T00:00:00Z", lifecycle: "active", line: "opus", context: 1_000_000, maxTokens: 128_000, thinking: modesOff, effort: levelsAll, forced: true, cacheMin: 1024},
	{id: "claude-opus-4-7", displayName: "Claude Opus 4.7", created: "2026-04-13T00:00:00Z", lifecycle: "active", line: "opus", context: 1_000_000, maxTokens: 128_000, thinking: modesOff, effort: levelsAll, forced: true, cacheMin: 2048},
	{id: "claude-sonnet-4-6", displayName: "Claude Sonnet 4.6", created: "2026-02-17T00:00:00Z", lifecycle: "active", line: "sonnet", context: 1_000_000, maxTokens: 128_000, thinking: modesAll, effort: levelsNoX, sampling: true, forced: true, cacheMin: 1024, summarized: true},
	{id: "claude-opus-4-6", displayName: "Claude Opus 4.6", created: "2026-02-05T00:00:00Z", lifecycle: "active", line: "opus", context: 1_000_000, maxTokens: 128_000, thinking: modesAll, effort: levelsNoX, sampling: true, forced: true, cacheMin: 4096, summarized: true},
	{id: "claude-opus-4-5", displayName: "Claude Opus 4.5", created: "2025-11-01T00:00:00Z", lifecycle: "deprecated", line: "opus", context: 200_000, maxTokens: 64_000, thinking: modesBudget, effort: levelsToHigh, sampling: true, forced: true, cacheMin: 4096, summarized: true},
	{id: "claude-haiku-4-5", displayName: "Claude Haiku 4.5", created: "2025-10-01T00:00:00Z", lifecycle: "active", line: "haiku", context: 200_000, maxTokens: 64_000, thinking: modesBudget, sampling: true, forced: true, cacheMin: 4096, summarized: true},
	{id: "claude-sonnet-4-5", displayName: "Claude Sonnet 4.5", created: "2025-09-29T00:00:00Z", lifecycle: "deprecated", line: "sonnet", context: 200_000, maxTokens: 64_000, thinking: modesBudget, sampling: true, forced: true, cacheMin: 1024, summarized: true},
}

var datedID = regexp.MustCompile(`^(claude-[a-z0-9-]+)-20[0-9]{6}$`)

// findModel returns the row of an id, which may carry a date; nil when the
// API has no such model.
func findModel(id string) *model {
	if dated := datedID.FindStringSubmatch(id); dated != nil {
		id = dated[1]
	}
	i := slices.IndexFunc(models, func(m model) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return &models[i]
}

// prefill reports models that continue an answer which the request began:
// the 4.5 family, which is also the last one without adaptive thinking.
func (m *model) prefill() bool { return !slices.Contains(m.thinking, "adaptive") }
