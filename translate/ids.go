package translate

import (
	"encoding/base64"
	"strconv"

	"ezat.io/chat-completions/translate/internal/hash"
)

// idTable has the different call ids of a conversation, each once. The first use of
// a good id goes upstream as it is; every other use, and every other id, has a
// mapped id, which is a function of the id and of how often it was used before
// (decision 15). It has one of these forms:
//
//	ezatid-CODE        the first use of a foreign id
//	ezatid-CODE__N     use number N, from 1 on
//	ezatid-CODE__N__M  either of those after it has met the client's own id M times
//
// CODE is the id with each letter, digit and - as it is and each other byte, _
// among them, as _XX: no two ids have one code, and no code has two _ in a row.
// Where that gets longer than idBytesMax, CODE is _h and a digest of the id: as h
// is no hexadecimal digit, no other code begins so, and the digest's length is
// fixed. So no two uses can have one mapped id.
type idTable struct {
	key   *hash.Key
	ids   []usedID
	slots []int32 // 1 + number of an id; open addressing, a power of two of them
	alike bool    // the client has good ids that begin like mapped ones
}

// usedID is one id.
type usedID struct {
	hash       uint64
	text       []byte
	uses       int32 // how many calls have it
	open, last int32 // 1 + number of the first and of the last call with it that is open
}

const (
	idPrefix = "ezatid-"
	// idSlotsKept is the size of the table that is kept from one request to the next.
	idSlotsKept = 128
)

func (t *idTable) begin(key *hash.Key) { t.key = key }

// release forgets the ids, and the memory that only a huge request has needed.
func (t *idTable) release() {
	if len(t.ids) == 0 {
		return
	}
	clear(t.ids)
	t.ids, t.alike = t.ids[:0], false
	if len(t.slots) > idSlotsKept {
		t.ids, t.slots = nil, nil
	}
	clear(t.slots)
}

// find is the number of an id, -1 for one that no call has.
func (t *idTable) find(id []byte) int32 {
	if len(t.slots) == 0 {
		return -1
	}
	return t.slots[t.slot(hash.Sip(t.key, id), id)] - 1
}

// slot is where an id is in slots, or where it would go.
func (t *idTable) slot(h uint64, id []byte) int {
	mask := len(t.slots) - 1
	i := int(h) & mask
	for t.slots[i] != 0 {
		if used := &t.ids[t.slots[i]-1]; used.hash == h && string(used.text) == string(id) {
			break
		}
		i = (i + 1) & mask
	}
	return i
}

// add is the number of an id, which is new or not.
func (t *idTable) add(id []byte) int32 {
	if 2*len(t.ids) >= len(t.slots) {
		t.grow()
	}
	h := hash.Sip(t.key, id)
	i := t.slot(h, id)
	if t.slots[i] == 0 {
		t.ids = push(t.ids, usedID{hash: h, text: id})
		t.slots[i] = int32(len(t.ids))
		t.alike = t.alike || goodID(id) && len(id) >= len(idPrefix) && string(id[:len(idPrefix)]) == idPrefix
	}
	return t.slots[i] - 1
}

func (t *idTable) grow() {
	t.slots = make([]int32, max(idSlotsKept, 2*len(t.slots)))
	mask := len(t.slots) - 1
	for n := range t.ids {
		i := int(t.ids[n].hash) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = int32(n + 1)
	}
}

// upstream is the id that a call has upstream, of whose own id there were so many
// uses before. A mapped id that is the client's own elsewhere in the conversation
// moves aside: each of those can be in the way of one mapped id, once.
func (t *idTable) upstream(number, uses int32, room *textSlab) []byte {
	id := t.ids[number].text
	if uses == 0 && goodID(id) {
		return id
	}
	mapped := appendMapped(room.room(mappedRoomBytes), id, uses, 0)
	for aside := int32(1); t.alike && t.find(mapped) >= 0; aside++ {
		mapped = appendMapped(mapped[:0], id, uses, aside)
	}
	room.took(mapped)
	return mapped
}

// mappedRoomBytes is the room for a mapped id while it is made: the numbers may be
// what makes it too long.
const mappedRoomBytes = idBytesMax + 2*len("__2147483647")

// appendMapped appends a mapped id.
func appendMapped(dst, id []byte, uses, aside int32) []byte {
	start, size := len(dst), len(idPrefix)
	dst = append(dst, idPrefix...)
	for i := 0; i < len(id) && size <= idBytesMax; i++ {
		if size++; id[i] == '_' || !idByte(id[i]) {
			size += 2
		}
	}
	if size <= idBytesMax {
		for _, c := range id {
			if c != '_' && idByte(c) {
				dst = append(dst, c)
				continue
			}
			const digits = "0123456789ABCDEF"
			dst = append(dst, '_', digits[c>>4], digits[c&15])
		}
		dst = appendUse(dst, uses, aside)
	}
	if size <= idBytesMax && len(dst)-start <= idBytesMax {
		return dst
	}
	digest := hash.Blake(id)
	dst = append(dst[:start+len(idPrefix)], "_h"...)
	dst = base64.RawURLEncoding.AppendEncode(dst, digest[:])
	return appendUse(dst, uses, aside)
}

// appendUse appends what tells the uses of an id apart.
func appendUse(dst []byte, uses, aside int32) []byte {
	if uses > 0 || aside > 0 {
		dst = append(dst, "__"...)
		dst = strconv.AppendInt(dst, int64(uses), 10)
	}
	if aside > 0 {
		dst = append(dst, "__"...)
		dst = strconv.AppendInt(dst, int64(aside), 10)
	}
	return dst
}

// goodID tells whether the upstream takes an id as it is (decision 15).
func goodID(id []byte) bool {
	if len(id) == 0 || len(id) > idBytesMax {
		return false
	}
	for _, c := range id {
		if !idByte(c) {
			return false
		}
	}
	return true
}

func idByte(c byte) bool {
	return c-'0' <= 9 || c|0x20-'a' <= 25 || c == '_' || c == '-'
}
