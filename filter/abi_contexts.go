package main

// contextKind tells a plugin's context from a stream's.
type contextKind int

const (
	pluginKind contextKind = iota + 1
	streamKind
)

// contextTable knows the ids that the host has made and not yet deleted, and
// the callouts that are under way. The SDK panics on others.
type contextTable struct {
	kinds map[uint32]contextKind
	calls map[callID]bool
	log   func(text string)
}

// callID is a callout of a plugin's.
type callID struct{ plugin, call uint32 }

func newContextTable(log func(text string)) *contextTable {
	return &contextTable{kinds: map[uint32]contextKind{}, calls: map[callID]bool{}, log: log}
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

func (t *contextTable) beginCall(plugin, call uint32) { t.calls[callID{plugin, call}] = true }

func (t *contextTable) endCall(plugin, call uint32) bool {
	id := callID{plugin, call}
	if !t.calls[id] {
		t.log("the host answered a callout that is not under way")
		return false
	}
	delete(t.calls, id)
	return true
}
