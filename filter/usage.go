package main

import (
	"strings"

	"ezat.io/chat-completions/translate"
)

// usageProperty is the one string that operator.md names: Envoy keeps the
// value as wasm.ezat.usage.
const usageProperty = "ezat.usage"

// record writes the usage line and counts, once per chat request. Only these
// have usage: model lists and unknown paths have no line.
func (x *exchange) record(r translate.Record) {
	if x.recorded || x.route.endpoint != chatCompletions {
		return
	}
	x.recorded = true
	line := r.Append(x.plugin.line[:0])
	x.plugin.line = line
	if err := x.host.SetProperty(usageProperty, line); err != nil && !x.plugin.usageRefused {
		x.plugin.usageRefused = true
		x.host.Log(Error, "usage could not be recorded: "+err.Error())
	}
	x.host.Count(requestMetric(r.Outcome), 1)
	for i, n := range [...]int64{r.Usage.Prompt, r.Usage.Cached, r.Usage.CacheWrite, r.Usage.Completion, r.Usage.Reasoning} {
		if n > 0 {
			x.host.Count(tokenMetrics[i], n)
		}
	}
}

// faultRecord is the record of an answer that is an error of the upstream's, or
// of the host in its place. What the host refuses before anything has gone up
// counts as refused.
func (x *exchange) faultRecord(e *translate.Error) translate.Record {
	outcome := translate.OutcomeUpstreamError
	if !x.sentUpstream && x.local {
		outcome = translate.OutcomeRefused
	}
	status := e.Status
	if !x.held {
		status = x.outStatus
	}
	return translate.Record{Model: x.reply.Model, Stream: x.reply.Stream, Status: status, Outcome: outcome}
}

// recordStream records a stream that has ended, well or not.
func (x *exchange) recordStream() {
	x.record(x.stream.Record())
}

// recordEnd records what the end of the stream finds unfinished: the client
// left, or the upstream broke off where the filter is not asked.
func (x *exchange) recordEnd() {
	if x.recorded || x.request == requestNew || x.response == responseForeign {
		return
	}
	r := translate.Record{Model: x.reply.Model, Stream: x.reply.Stream, Outcome: translate.OutcomeClientLeft}
	switch {
	case x.brokenOff():
		r.Outcome = translate.OutcomeFailed
	case x.stream != nil:
		r = x.stream.Record()
	}
	r.Status = int(x.numberProperty("response", "code"))
	x.record(r)
}

// brokenOff tells an end that the upstream or the host made from one that the
// client made, by Envoy's response code details: upstream_reset_…,
// response_payload_too_large, response_timeout, stream_idle_timeout and the like.
func (x *exchange) brokenOff() bool {
	details, _ := x.host.Property("response", "code_details")
	return strings.HasPrefix(details, "upstream_") || strings.HasPrefix(details, "response_") ||
		strings.Contains(details, "timeout")
}

// countRefusal counts by the field that was refused.
func (x *exchange) countRefusal(e *translate.Error) {
	if e.Field != "" {
		x.host.Count(x.plugin.refusalMetric(e.Field), 1)
	}
}
