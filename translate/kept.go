package translate

import "ezat.io/chat-completions/translate/internal/jsontext"

// kept is memory for what is made of a request, used again for the next one. An
// allocation costs a guest as much as scanning a hundred bytes. Requests that need
// more get the rest from the heap, and nothing of that is held on to: a huge
// request leaves no huge memory behind, and none leaves a trace of its own.
type kept struct {
	turns  []turn
	blocks slab[block]
	tools  slab[toolBlock]
	text   textSlab
	calls  []call
	ids    idTable
}

const (
	turnsKept  = 64
	callsKept  = 64
	blocksKept = 128 // also how many are made at once beyond them
	toolsKept  = 64
	textKept   = 16 << 10 // bytes

	// valuesKept is up to how many JSON values a body usually finds room for, and
	// bytesPerValue what each further one takes at most: nodes of the index, blocks,
	// turns, and what these lists leave behind as they grow.
	valuesKept    = 2048
	bytesPerValue = 256
)

// begin makes the memory when it is first needed.
func (k *kept) begin() {
	if k.turns == nil {
		k.turns, k.calls = make([]turn, 0, turnsKept), make([]call, 0, callsKept)
		k.blocks.first, k.tools.first = make([]block, blocksKept), make([]toolBlock, toolsKept)
		k.text.first = make([]byte, textKept)
		k.blocks.free, k.tools.free, k.text.free = k.blocks.first, k.tools.first, k.text.first
	}
}

// release lets go of what the lists of a request hold, and makes the memory free.
func (k *kept) release(turns []turn, calls []call) {
	clear(k.turns[:min(len(turns), cap(k.turns))])
	clear(k.calls[:min(len(calls), cap(k.calls))])
	k.blocks.release()
	k.tools.release()
	k.text.release()
	k.ids.release()
}

// slab hands out room for lists, from a first chunk that is kept and then from
// others.
type slab[T any] struct {
	first, free []T
	spilled     bool // free is no longer a part of first
}

// room is an empty list with room for n.
func (s *slab[T]) room(n int) []T {
	if n > len(s.free) {
		if 2*n > len(s.first) {
			return make([]T, 0, n)
		}
		s.free, s.spilled = make([]T, len(s.first)), true
	}
	list := s.free[:0:n]
	s.free = s.free[n:]
	return list
}

func (s *slab[T]) release() {
	switch used := len(s.first) - len(s.free); {
	case s.spilled:
		clear(s.first)
	case used > 0:
		clear(s.first[:used])
	}
	s.free, s.spilled = s.first, false
}

// textSlab hands out memory for texts. All that is free of it is zero.
type textSlab struct{ slab[byte] }

// room is an empty text with room for n bytes.
func (s *textSlab) room(n int) []byte {
	if 4*n > len(s.first) {
		return make([]byte, 0, n)
	}
	if n > len(s.free) {
		s.free, s.spilled = make([]byte, len(s.first)), true
	}
	return s.free[:0:n]
}

// took notes how much of its room the newest text has taken.
func (s *textSlab) took(text []byte) {
	if 4*cap(text) <= len(s.first) {
		s.free = s.free[len(text):]
	}
}

// decoded is the text of a string's spelling, with Slack zeros behind it until the
// next one is asked for.
func (s *textSlab) decoded(inner []byte) []byte {
	text := jsontext.AppendDecoded(s.room(len(inner)+jsontext.Slack), inner)
	s.took(text)
	return text
}

// of is the text of a string: its spelling where that is the same.
func (s *textSlab) of(v jsontext.Value) []byte {
	if v.Escaped() {
		return s.decoded(v.Inner())
	}
	return v.Inner()
}

// push is append for lists that a client makes long: they double, so that what
// growing leaves behind is no longer than the list.
func push[T any](list []T, v T) []T {
	if len(list) == cap(list) {
		list = append(make([]T, 0, max(2*cap(list), 8)), list...)
	}
	return append(list, v)
}
