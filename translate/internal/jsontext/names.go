package jsontext

import "ezat.io/chat-completions/translate/internal/hash"

// nameSet remembers names of one object. Few short ones are searched one by one;
// others get a table with open addressing, which is used again by the next object:
// a slot counts only in the round that has filled it.
type nameSet struct {
	text   []byte // decoded names
	newest name   // the last of them
	few    [8]name
	n      int // names so far
	table  []nameSlot
	round  uint32
	many   bool // the names are in the table
}

// name is a span of the document's text, or, from the text's end on, of the
// decoded names.
type name struct{ start, end uint32 }

type nameSlot struct {
	hash, round uint32
	name        name
}

const (
	// shortNameBytes is up to where comparing names costs next to nothing.
	shortNameBytes = 64
	// slotsFirst is the table's first size, slotsKept the largest that is kept from
	// one document to the next (32 KiB), and textKept the same of decoded names.
	slotsFirst = 1 << 6
	slotsKept  = 1 << 11
	textKept   = 1 << 12
)

func (s *nameSet) begin() { s.text, s.n, s.many = s.text[:0], 0, false }

func (s *nameSet) release() {
	if cap(s.text) > textKept {
		s.text = nil
	}
	if len(s.table) > slotsKept {
		s.table = nil
	}
}

// decodedKey is the text of the key at a node, which has escapes.
func (d *Doc) decodedKey(i uint32) []byte {
	s, size := &d.names, uint32(len(d.src))
	before := len(s.text)
	s.text = AppendDecoded(s.text, Value{d, i}.Inner())
	s.newest = name{size + uint32(before), size + uint32(len(s.text))}
	return s.text[before:]
}

// nameRepeats adds the key at a node to the set; true when an equal one is there.
// Of a key with escapes the text is the newest one that was decoded.
func (d *Doc) nameRepeats(i uint32) bool {
	s := &d.names
	n := &d.nodes[i]
	at := name{n.start + 1, n.end - 1}
	if n.flags&flagEscaped != 0 {
		at = s.newest
	}
	key := d.nameText(at)
	if !s.many {
		if len(key) <= shortNameBytes && s.n < len(s.few) {
			for _, k := range s.few[:s.n] {
				if string(d.nameText(k)) == string(key) {
					return true
				}
			}
			s.few[s.n] = at
			s.n++
			return false
		}
		d.spreadNames()
	}
	return d.putName(at)
}

func (d *Doc) nameText(at name) []byte {
	if size := uint32(len(d.src)); at.start >= size {
		return d.names.text[at.start-size : at.end-size]
	}
	return d.src[at.start:at.end]
}

// spreadNames begins to use the table, with the few names that are there.
func (d *Doc) spreadNames() {
	s := &d.names
	if s.table == nil {
		s.table = make([]nameSlot, slotsFirst)
	}
	if s.round++; s.round == 0 {
		clear(s.table)
		s.round = 1
	}
	few := s.n
	s.n, s.many = 0, true
	for _, at := range s.few[:few] {
		d.putName(at)
	}
}

// putName adds a name to the table; true when it is there.
func (d *Doc) putName(at name) bool {
	s := &d.names
	key := d.nameText(at)
	h := uint32(hash.Sip(&d.Key, key))
	mask := uint32(len(s.table) - 1)
	i := h & mask
	for ; s.table[i].round == s.round; i = (i + 1) & mask {
		if slot := &s.table[i]; slot.hash == h && string(d.nameText(slot.name)) == string(key) {
			return true
		}
	}
	s.table[i] = nameSlot{h, s.round, at}
	if s.n++; 2*s.n > len(s.table) {
		s.grow()
	}
	return false
}

// grow doubles the table.
func (s *nameSet) grow() {
	old := s.table
	s.table = make([]nameSlot, 2*len(old))
	mask := uint32(len(s.table) - 1)
	for _, slot := range old {
		if slot.round != s.round {
			continue
		}
		i := slot.hash & mask
		for s.table[i].round == s.round {
			i = (i + 1) & mask
		}
		s.table[i] = slot
	}
}
