package main

// contextKind tells a plugin's context from a stream's.
type contextKind int

const (
	pluginKind contextKind = iota + 1
	streamKind
)

// contextTable knows the ids that the host has made and not yet deleted, on
// others of which the SDK panics, and the callouts that are under way. The SDK's
// own table of callouts forgets those of a stream that has ended, and of one
// that is not the callback's own.
type contextTable struct {
	kinds map[uint32]contextKind
	calls map[callID]func(size int)
	log   func(text string)
}

// callID is a callout of a plugin's.
type callID struct{ plugin, call uint32 }

func newContextTable(log func(text string)) *contextTable {
	return &contextTable{kinds: map[uint32]contextKind{}, calls: map[callID]func(int){}, log: log}
}

// add takes a new context. parent is 0 for a plugin's, else the plugin's of a stream.
func (t *contextTable) add(id, parent uint32) bool {
	if t.kinds[id] != 0 {
		t.log("the host created a context twice")
		return false
	}
	if parent == 0 {
		t.kinds[id] = pluginKind
		return true
	}
	if !t.known(parent, pluginKind) {
		return false
	}
	t.kinds[id] = streamKind
	return true
}

func (t *contextTable) known(id uint32, kind contextKind) bool {
	if t.kinds[id] != kind {
		t.log("the host called for a context that is not there")
		return false
	}
	return true
}

func (t *contextTable) remove(id uint32) bool {
	kind := t.kinds[id]
	if kind == 0 {
		t.log("the host deleted a context that is not there")
		return false
	}
	delete(t.kinds, id)
	if kind == pluginKind {
		for call := range t.calls {
			if call.plugin == id {
				delete(t.calls, call)
			}
		}
	}
	return true
}

// beginCall notes what is to be done with the answer of size bytes to a callout.
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
