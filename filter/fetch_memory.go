package main

import (
	"container/list"
	"runtime"

	"ezat.io/chat-completions/translate"
)

// imageMemory shares what downloads take among the requests of one VM: the
// downloads under way, and the bytes of the images that are here
// (`images.memory_bytes`).
//
// Downloads under way are bounded by their number. A few any request may use, in
// turns; many more are for the first download of a request that has none under
// way. So servers that never answer keep nobody waiting but those who asked them.
// The host does not call a callout off: one whose request has ended counts until
// its answer comes.
//
// An image takes memory when it is here, and not before. Where there is no room
// for it, the request that holds most begins again in a lane, in which one goes
// after the other with its whole need reserved. So each request begins again once
// at most, and nobody waits for a part of what another one waits for.
type imageMemory struct {
	shared, most int // downloads under way: any, and with those that are first
	requestBytes int // that the images of one request can have

	underWay int          // callouts that the host owes an answer to
	bytes    int          // of images that are here, without those of the lane
	fresh    queue        // requests with something to begin and nothing under way
	more     queue        // those that have something under way
	lane     queue        // those that begin again or stand behind such, the oldest first
	holding  queue        // those outside the lane that have images here
	unseen   []*downloads // those that may have begun to wait since watch has looked
	running  bool
	garbage  int // bytes let go since the last collection
}

func newImageMemory() *imageMemory {
	return &imageMemory{shared: imageDownloadsShared, most: imageDownloadsMax, requestBytes: translate.ImagesBytesMax}
}

// queue is a list of requests. Each has one place among those that wait, and one
// among those that hold images.
type queue struct{ list.List }

type place struct {
	in *queue
	at *list.Element
}

func (q *queue) first() *downloads {
	if e := q.Front(); e != nil {
		return e.Value.(*downloads)
	}
	return nil
}

// move puts a request at the end of a queue, nil for none.
func (p *place) move(all *downloads, to *queue) {
	if p.in != nil {
		p.in.Remove(p.at)
	}
	if p.in = to; to != nil {
		p.at = to.PushBack(all)
	}
}

// enqueue takes in a request that has begun nothing. Where the lane leaves nothing
// for images outside of it, a new one stands in line there, too.
func (m *imageMemory) enqueue(all *downloads) {
	to := &m.fresh
	if all.inLane = all.inLane || m.bound(all) <= 0; all.inLane {
		to = &m.lane
	}
	all.waits.move(all, to)
	m.unseen = append(m.unseen, all)
}

// began puts a request where it belongs after one of its downloads has begun. One
// of the lane keeps its place until it ends.
func (m *imageMemory) began(all *downloads) {
	switch {
	case all.waits.in == nil || all.inLane:
	case all.started == len(all.list):
		all.waits.move(all, nil)
	default:
		all.waits.move(all, &m.more)
	}
}

// ended does so after one has ended.
func (m *imageMemory) ended(all *downloads) {
	if all.waits.in == &m.more && all.underWay == 0 {
		all.waits.move(all, &m.fresh)
	}
}

// release lets go of all that a request has here and waits for. What is under way
// stays so.
func (m *imageMemory) release(all *downloads) {
	if all.holds.in != nil {
		m.bytes -= all.bytes
	}
	all.waits.move(all, nil)
	all.holds.move(all, nil)
	m.garbage += all.bytes
	all.bytes = 0
	for i := range all.list {
		all.list[i].image = translate.Image{}
	}
}

// run begins what may begin. It works on streams that wait, and returns to x,
// whose callback is running, if there is one. What it begins may end at once and
// come back here.
func (m *imageMemory) run(x *exchange) {
	if m.running {
		return
	}
	m.running = true
	defer func() { m.running = false }()
	at := x
	for all := m.next(); all != nil; all = m.next() {
		if enter(&at, all) {
			all.startNext()
			m.began(all)
		}
	}
	m.watch(&at)
	if at != x && x != nil {
		// It fails when x has ended: then nothing more is done for it.
		_ = x.host.Enter()
	}
}

// enter goes from one stream to that of a request.
func enter(at **exchange, all *downloads) bool {
	if *at == all.exchange {
		return true
	}
	if err := all.exchange.host.Enter(); err != nil {
		// The host has not said that the stream ended.
		all.exchange.endDownloads()
		return false
	}
	*at = all.exchange
	return true
}

// next is the request that may begin a download now: first those that have none
// under way, in the order in which they came, then the others in turns.
func (m *imageMemory) next() *downloads {
	head := m.admitted()
	switch {
	case m.underWay >= m.most:
		return nil
	case head != nil && head.underWay == 0:
		return head
	}
	all := m.fresh.first()
	if all != nil || m.underWay >= m.shared {
		return all
	}
	if head != nil {
		return head
	}
	return m.more.first()
}

// admitted is the request whose turn it is in the lane, if it has something to
// begin and its need is free. What it has begun with stays reserved.
func (m *imageMemory) admitted() *downloads {
	head := m.lane.first()
	if head == nil || !head.waiting() {
		return nil
	}
	if head.started == 0 && m.bytes > m.bound(head) {
		return nil
	}
	return head
}

// bound is how many bytes the images outside the lane may have, as a request's
// plugin has it: all but what the first in the lane needs.
func (m *imageMemory) bound(all *downloads) int {
	bound := all.bytesMax()
	if head := m.lane.first(); head != nil {
		bound -= m.need(head)
	}
	return bound
}

// need is the most that the images of a request can take.
func (m *imageMemory) need(all *downloads) int { return min(m.requestBytes, all.bytesMax()) }

// fit makes room for one more image of a request. Where there is none, it takes
// the place of a request that holds more than this one would, which begins again;
// ok is false when there is none such: then this one has to.
//
// What is held does not grow by this while somebody is in the lane and waits for
// his need to be free.
func (m *imageMemory) fit(all *downloads, size int) (ok bool) {
	if m.bytes+size <= m.bound(all) {
		return true
	}
	most := all
	bytes := all.bytes + size
	for e := m.holding.Front(); e != nil; e = e.Next() {
		if other := e.Value.(*downloads); other != all && other.bytes > bytes {
			most, bytes = other, other.bytes
		}
	}
	if most == all || m.bytes-most.bytes+size > all.bytesMax() {
		return false
	}
	most.startOver()
	return true
}

// take counts an image that is here.
func (m *imageMemory) take(all *downloads, size int) {
	all.bytes += size
	if all.inLane {
		return
	}
	m.bytes += size
	if all.holds.in == nil {
		all.holds.move(all, &m.holding)
	}
}

// watch has the plugins tick whose requests wait.
func (m *imageMemory) watch(at **exchange) {
	for _, all := range m.unseen {
		x := all.exchange
		if !x.plugin.ticking && x.downloads == all && all.waiting() && enter(at, all) {
			x.plugin.beginTicks(x.host)
		}
	}
	m.unseen = nil
}

// late lists the requests of a plugin that have waited too long, and counts all
// of its that wait. A clock that is set back lets nobody wait longer than from now on.
func (m *imageMemory) late(p *plugin, now int64) (late []*downloads, waiting int) {
	for _, q := range [...]*queue{&m.fresh, &m.more, &m.lane} {
		for e := q.Front(); e != nil; e = e.Next() {
			all := e.Value.(*downloads)
			if all.exchange.plugin != p || !all.waiting() {
				continue
			}
			waiting++
			all.patience = min(all.patience, now+imageWaitMs*1_000_000)
			if now >= all.patience {
				late = append(late, all)
			}
		}
	}
	return late, waiting
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
