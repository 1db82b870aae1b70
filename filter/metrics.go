package main

import "ezat.io/chat-completions/translate"

// Metric is a counter or a histogram, by its name in operator.md. There is one
// value for each name, which keeps the host's number for it.
type Metric struct {
	name string

	// The bridge's, from the first use on.
	id      uint32
	defined bool
	refused bool // the host would not have it, and the log says so
}

var (
	requestMetrics = [...]struct {
		outcome string
		metric  *Metric
	}{
		{translate.OutcomeOK, &Metric{name: "ezat.requests.ok"}},
		{translate.OutcomeRefused, &Metric{name: "ezat.requests.refused"}},
		{translate.OutcomeUpstreamError, &Metric{name: "ezat.requests.upstream_error"}},
		{translate.OutcomeFailed, requestFailed},
		{translate.OutcomeClientLeft, &Metric{name: "ezat.requests.client_left"}},
	}
	// tokenMetrics are in the order of the usage line.
	tokenMetrics = [...]*Metric{
		{name: "ezat.tokens.prompt"}, {name: "ezat.tokens.cached"}, {name: "ezat.tokens.cache_write"},
		{name: "ezat.tokens.completion"}, {name: "ezat.tokens.reasoning"},
	}
	requestFailed  = &Metric{name: "ezat.requests.failed"}
	imagesOK       = &Metric{name: "ezat.image_downloads.ok"}
	imagesFailed   = &Metric{name: "ezat.image_downloads.failed"}
	translateTime  = &Metric{name: "ezat.translate_us"}
	firstTokenTime = &Metric{name: "ezat.first_token_ms"}
)

// requestMetric counts the requests of an outcome.
func requestMetric(outcome string) *Metric {
	for i := range requestMetrics {
		if requestMetrics[i].outcome == outcome {
			return requestMetrics[i].metric
		}
	}
	return requestFailed // there is no other outcome
}

// refusalMetric counts the refusals of a field. The fields are those of the
// contract's table, and so few.
func (p *plugin) refusalMetric(field string) *Metric {
	m := p.refusals[field]
	if m == nil {
		m = &Metric{name: "ezat.refusals." + field}
		p.refusals[field] = m
	}
	return m
}
