package main

// contextTable knows the contexts that the host has made and not yet deleted,
// and the callouts that are under way. The SDK panics on ids that it does not
// know, and its own table of callouts forgets those of a stream that has ended,
// and of one that is not the callback's own.
type contextTable struct {
	plugins map[uint32]*plugin // nil until the plugin has started
	streams map[uint32]*exchange
	calls   map[callID]func(size int)
	log     func(text string)
}

// callID is a callout of a plugin's.
type callID struct{ plugin, call uint32 }

func newContextTable(log func(text string)) *contextTable {
	return &contextTable{
		plugins: map[uint32]*plugin{}, streams: map[uint32]*exchange{}, calls: map[callID]func(int){}, log: log,
	}
}

// addPlugin takes a new plugin's context.
func (t *contextTable) addPlugin(id uint32) bool {
	if !t.isFree(id) {
		return false
	}
	t.plugins[id] = nil
	return true
}

// addStream takes a new stream's context, of a plugin. host is what the stream
// asks.
func (t *contextTable) addStream(id, parent uint32, host Host) bool {
	if !t.isFree(id) || !t.hasPlugin(parent) {
		return false
	}
	t.streams[id] = t.plugins[parent].newExchange(host, id)
	return true
}

func (t *contextTable) isFree(id uint32) bool {
	_, taken := t.plugins[id]
	if taken || t.streams[id] != nil {
		t.log("the host created a context twice")
		return false
	}
	return true
}

// hasPlugin tells whether a plugin's context is there.
func (t *contextTable) hasPlugin(id uint32) bool {
	_, ok := t.plugins[id]
	if !ok {
		t.log("the host called for a context that is not there")
	}
	return ok
}

// stream is the exchange of a stream's context, nil when there is none.
func (t *contextTable) stream(id uint32) *exchange {
	x := t.streams[id]
	if x == nil {
		t.log("the host called for a context that is not there")
	}
	return x
}

// remove forgets a context, and tells an exchange that its stream has ended: not
// every host has said so before. wasPlugin tells that it was a plugin's.
func (t *contextTable) remove(id uint32) (wasPlugin bool) {
	if x := t.streams[id]; x != nil {
		delete(t.streams, id)
		x.Done()
		return false
	}
	if _, ok := t.plugins[id]; !ok {
		t.log("the host deleted a context that is not there")
		return false
	}
	t.endStreams(t.plugins[id])
	delete(t.plugins, id)
	t.abandonCalls(id)
	return true
}

// endStreams ends what a plugin that goes away has left of streams: nothing of
// them may begin anything more in its name.
func (t *contextTable) endStreams(p *plugin) {
	for id, x := range t.streams {
		if p != nil && x.plugin == p {
			delete(t.streams, id)
			x.Done()
		}
	}
}

// abandonCalls tells those who wait for the callouts of a plugin that is gone
// that no answer comes: they may hold memory that others wait for.
func (t *contextTable) abandonCalls(plugin uint32) {
	var lost []func(size int)
	for id, done := range t.calls {
		if id.plugin == plugin {
			lost = append(lost, done)
			delete(t.calls, id)
		}
	}
	for _, done := range lost {
		done(noAnswer)
	}
}

// noAnswer is the size of the answer to a callout that the host has given up.
const noAnswer = -1

// beginCall notes what is to be done with the answer to a callout: of size bytes,
// or noAnswer.
func (t *contextTable) beginCall(plugin, call uint32, done func(size int)) {
	t.calls[callID{plugin, call}] = done
}

func (t *contextTable) endCall(plugin, call uint32) (done func(size int), ok bool) {
	id := callID{plugin, call}
	if done, ok = t.calls[id]; !ok {
		t.log("the host answered a callout that is not under way")
	}
	delete(t.calls, id)
	return done, ok
}
