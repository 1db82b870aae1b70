package main

// Every budget is in this file, its unit last in the name. One that cannot be
// reached is reported as broken, with the reason in RATIONALE.md, and is not
// moved.
const (
	// In Envoy's VM, relative to one copy of the body there, or to
	// gjson.ValidBytes on the same bytes in an untreated module.
	imageCopiesMax  = 6
	agentTurnGJSON  = 0.6
	smallChatGJSON  = 0.8
	deltaGJSON      = 0.5
	deltaAllocsMax  = 0
	nativeTimesMax  = 4
	growthTimesMax  = 2 // of what a byte costs, over four doublings: squares would give 16
	memoryBodyTimes = 1.6
	memoryBaseBytes = 8 << 20

	// What the filter adds to an exchange in Envoy, in milliseconds.
	smallChatAddedMs  = 0.10
	agentTurnAddedMs  = 0.5
	image8MBAddedMs   = 9
	image24MBAddedMs  = 26
	deltas200AddedMs  = 0.25
	firstChunkAddedMs = 0.15

	// The part of the throughput without the filter that is left at
	// connectionsForLoad connections.
	smallChatThroughputPart = 0.7
	deltasThroughputPart    = 0.8

	// The module. Live is relative to an untreated empty Go module.
	moduleBytesMax        = 3_500_000
	moduleGzippedBytesMax = 1_048_576
	liveTimesMax          = 1
)

func atMost(v float64) *limit  { return &limit{Value: v} }
func atLeast(v float64) *limit { return &limit{Value: v, AtLeast: true} }
