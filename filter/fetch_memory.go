package main

import (
	"runtime"
	"slices"

	"ezat.io/chat-completions/translate"
)

// imageMemory bounds the bytes of downloaded images in one VM
// (`images.memory_bytes`). A download takes the largest size of an image from
// its start on, and its own size once it is here; one whose request has ended
// keeps its part until the host has let go of the answer.
//
// Requests whose downloads do not fit wait their turn, the oldest first. Only
// the oldest may have started some downloads and not others. So all other memory
// is held by requests that wait for nothing but the network, which takes 15 s at
// most, and none waits for ever.
type imageMemory struct {
	reserved int
	waiting  []*downloads
	running  bool
	garbage  int // bytes let go since the last collection
}

func (m *imageMemory) reserve(bytes int) { m.reserved += bytes }

func (m *imageMemory) enqueue(all *downloads) { m.waiting = append(m.waiting, all) }

func (m *imageMemory) dequeue(all *downloads) {
	if i := slices.Index(m.waiting, all); i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
	}
}

// run starts what fits. It works on streams that wait, and returns to x, whose
// callback is running. What it starts may end at once and come back here.
func (m *imageMemory) run(x *exchange) {
	if m.running {
		return
	}
	m.running = true
	defer func() { m.running = false }()
	at := x
	for len(m.waiting) > 0 {
		all := m.waiting[0]
		bytes, ok := m.room(all)
		if !ok {
			break
		}
		if at != all.exchange {
			at = all.exchange
			if err := at.host.Enter(); err != nil {
				// The host has not said that the stream ended.
				at.endDownloads()
				continue
			}
		}
		all.startNext(bytes)
	}
	if at != x {
		// It fails when x has ended: then nothing more is done for it.
		_ = x.host.Enter()
	}
}

// room is the memory that the next download of the oldest request gets. Where
// its own images are all that there is, nothing better will come: it gets the
// rest, which may be less than an image needs. ok is false when it has to wait.
func (m *imageMemory) room(all *downloads) (bytes int, ok bool) {
	free := all.bytesMax() - m.reserved
	if free >= translate.ImageBytesMax {
		return translate.ImageBytesMax, true
	}
	return free, m.reserved == all.held()
}

// collect has the garbage collector run before more images come, when many bytes
// of old ones are garbage. By itself it would wait until they are as many as all
// that is in use.
func (m *imageMemory) collect() {
	if m.garbage >= imageGarbageBytesMax {
		m.garbage = 0
		runtime.GC()
	}
}
