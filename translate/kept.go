package translate

// kept is memory for the turns and blocks of a request that is used again for
// the next one. An allocation costs a guest as much as scanning a hundred bytes.
// Requests that need more get the rest from the heap, and nothing of that is
// held on to: a huge request leaves no huge memory behind.
type kept struct {
	turns  []turn
	blocks []block
	used   int // of blocks
}

const (
	turnsKept  = 64
	blocksKept = 256
)

// begin makes the memory free for a request, and is that for its turns.
func (k *kept) begin() []turn {
	if k.turns == nil {
		k.turns, k.blocks = make([]turn, turnsKept), make([]block, blocksKept)
	}
	// What they name must not be held on to. A turn takes room for a block or two.
	clear(k.turns[:min(k.used, turnsKept)])
	clear(k.blocks[:k.used])
	k.used = 0
	return k.turns[:0]
}

// room is an empty list with room for n blocks, or for none when that is used up.
func (k *kept) room(n int) []block {
	if k.used+n > len(k.blocks) {
		return nil
	}
	k.used += n
	return k.blocks[k.used-n : k.used-n : k.used]
}
