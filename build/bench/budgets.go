package main

// Every budget is in this file, its unit last in the name. One that has not been
// reached is not moved: it shows as over, RATIONALE.md says why, and a floor
// beside it is held in its place. The floors are what was measured, with room for
// a machine that is not quite idle.
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

	// Of processor time, what the worst body takes beside the slowest honest one of
	// the same size (decision 54 allows 5).
	hostileTimesMax = 2

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

const (
	smallChatGJSONFloor          = 1.0
	smallChatAddedFloorMs        = 0.18
	agentTurnAddedFloorMs        = 0.7
	deltas200AddedFloorMs        = 0.4
	firstChunkAddedFloorMs       = 0.35
	smallChatThroughputFloorPart = 0.36
	deltasThroughputFloorPart    = 0.28 // written at once, where Envoy alone has next to nothing to do
	writesThroughputFloorPart    = 0.5  // a write for each
	liveTimesFloor               = 1.4
)

func atMost(v float64) *limit  { return &limit{Value: v} }
func atLeast(v float64) *limit { return &limit{Value: v, AtLeast: true} }
