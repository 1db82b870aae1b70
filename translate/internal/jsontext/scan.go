// Package jsontext is the JSON floor of the core: a scanner that validates a
// text while it indexes it, looking at each byte once, and append-style
// helpers that write JSON.
//
// The scanner copies nothing. A Doc is a flat list of nodes in the order of
// the text; a Value is a position in that list. Strings that only pass
// through are copied as spelled, by their span.
package jsontext

import (
	"math/bits"
	"unsafe"

	"ezat.io/chat-completions/translate/internal/hash"
)

// Kind tells what a value is.
type Kind uint8

// The kinds of JSON values. The zero Kind belongs to the zero Value, which
// stands for "not there".
const (
	Absent Kind = iota
	Null
	False
	True
	Number
	String
	Array
	Object
)

// Slack is the number of zero bytes behind a text that let the scanner load
// eight bytes anywhere in it and stop without looking for the end: zero is
// not valid at any place of a JSON text.
const Slack = 64

// Reason says why a text was refused.
type Reason uint8

// The reasons of a refusal.
const (
	Syntax    Reason = iota + 1 // not JSON
	NotUTF8                     // bytes that are not UTF-8
	TooDeep                     // nested deeper than Limits.Depth
	TooMany                     // more values than Limits.Values
	TooLong                     // longer than spans can name (2 GiB)
	Truncated                   // ends in the middle of a value
)

// Error is a refusal at a byte offset of the text.
type Error struct {
	Reason Reason
	Offset int
}

// Limits bound what a text may cost.
type Limits struct {
	Depth  int // levels of nesting, at most 512
	Values int // values, keys not counted
	// Mend lets the scanner write U+FFFD (\ufffd, which is as long) over each half
	// of a surrogate pair, in src itself: the text then has none.
	Mend bool
}

const depthMax = 512

// nodesKept is how large an index is kept from one text to the next: 1 MiB.
const nodesKept = 1 << 16

// bytesPerNode is how many bytes of a text stand for one node, as a guess for the
// first text of a Doc, and nodesGuessed the most that are guessed.
const (
	bytesPerNode = 12
	nodesGuessed = 1 << 10
)

const (
	flagEscaped = 1 << iota // the string has escapes
	flagLone                // the string has half of a surrogate pair
	flagBase64              // see Value.Base64
)

// node is one value or key: its span in the text and the node behind its
// subtree.
type node struct {
	start, end uint32
	next       uint32
	kind       Kind
	flags      uint8
}

// Doc is an indexed JSON text. The zero Doc is ready; Scan may be called again
// to index another text in the same memory.
type Doc struct {
	// Key is the secret of the tables that find repeated keys: without it a text
	// could be made whose keys all meet.
	Key hash.Key

	src   []byte // the text; Slack zero bytes stand behind it
	nodes []node
	lone  bool // some string has half of a surrogate pair

	values int // how many values there are, keys not counted

	scanner scanner // kept for its stack of open containers
	names   nameSet // of the object that is walked
}

// Scan validates src and indexes it. The text must stay unchanged while the
// Doc is in use. Scan reads up to Slack bytes behind src where its capacity
// holds zeros there, and copies src otherwise. Only Limits.Mend lets it write.
func (d *Doc) Scan(src []byte, lim Limits) *Error {
	if len(src) > 1<<31-1-Slack {
		return &Error{TooLong, 0}
	}
	d.src = withSlack(src)
	if cap(d.nodes) > nodesKept {
		d.nodes = nil // what one huge text needed is not held for all that follow
	}
	if d.nodes == nil {
		d.nodes = make([]node, 0, min(max(8, len(src)/bytesPerNode), nodesGuessed))
	}
	d.nodes = d.nodes[:0]
	d.lone = false
	s := &d.scanner
	s.base, s.nodes = unsafe.Pointer(unsafe.SliceData(d.src)), d.nodes
	s.left, s.values, s.depth, s.lone, s.mend = 0, lim.Values, min(lim.Depth, depthMax), false, lim.Mend
	s.grant()
	err := s.text(len(src))
	d.nodes, s.nodes, s.base = s.nodes, nil, nil
	d.lone = s.lone
	d.values = lim.Values - s.values - max(s.left, 0)
	if err != nil && err.Offset >= len(src) && err.Reason == Syntax {
		err.Reason = Truncated
		err.Offset = len(src)
	}
	return err
}

// Release lets go of the text, and of what only a huge one has needed.
func (d *Doc) Release() {
	d.src = nil
	if cap(d.nodes) > nodesKept {
		d.nodes = nil
	}
	d.names.release()
}

// withSlack returns src with zeros readable behind it.
func withSlack(src []byte) []byte {
	if cap(src)-len(src) >= Slack {
		tail := src[len(src) : len(src)+Slack]
		var or byte
		for _, c := range tail {
			or |= c
		}
		if or == 0 {
			return src
		}
	}
	padded := make([]byte, len(src)+Slack)
	copy(padded, src)
	return padded[:len(src)]
}

// Values counts the values of the text, keys not among them.
func (d *Doc) Values() int { return d.values }

// Root is the value of the whole text.
func (d *Doc) Root() Value { return Value{d, 0} }

// scanner walks a text. All loads go through base without bounds checks: each
// byte is looked at only after the one before it was found not to be the zero
// that ends the text, and eight-byte loads stay within Slack.
type scanner struct {
	base   unsafe.Pointer
	nodes  []node
	left   int // how many more values the index has room for, and the text may have
	values int // how many more may come behind those
	depth  int // how deep the text may nest
	lone   bool
	mend   bool
	open   []uint32 // the open containers, as many as levels have ever been needed
}

// grant gives the scanner room for more values; false when there may be none. A
// value needs at most two nodes until the next one begins: its own, and that of
// the key behind it. The index doubles, so that what growing leaves behind is no
// larger than the index.
func (s *scanner) grant() bool {
	s.left = 0
	if s.values == 0 {
		return false
	}
	if cap(s.nodes)-len(s.nodes) < 2 {
		s.nodes = append(make([]node, 0, 2*cap(s.nodes)), s.nodes...)
	}
	s.left = min((cap(s.nodes)-len(s.nodes))/2, s.values)
	s.values -= s.left
	return true
}

func (s *scanner) at(i int) byte     { return *(*byte)(unsafe.Add(s.base, i)) }
func (s *scanner) load(i int) uint64 { return *(*uint64)(unsafe.Add(s.base, i)) }

func (s *scanner) space(i int) int {
	for {
		c := s.at(i)
		if c == ' ' && s.load(i) == ones*' ' {
			i += 8
			continue
		}
		if c > ' ' {
			return i
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return i
		}
		i++
	}
}

func syntax(i int) *Error { return &Error{Syntax, i} }

// text scans one value and the white space around it.
func (s *scanner) text(n int) *Error {
	level := 0 // open containers
	i := s.space(0)
	for {
		// A value begins at i.
		if s.left == 0 && !s.grant() {
			return &Error{TooMany, i}
		}
		s.left--
		self := uint32(len(s.nodes))
		switch c := s.at(i); c {
		case '"':
			end, flags, err := s.str(i)
			if err != nil {
				return err
			}
			s.nodes = append(s.nodes, node{uint32(i), uint32(end), self + 1, String, flags})
			i = end
		case '{', '[':
			next, entered, err := s.enter(i, level)
			if err != nil {
				return err
			}
			i = next
			if entered {
				level++
				continue
			}
		default:
			end, kind := s.scalar(i, c)
			if kind == Absent {
				return syntax(end)
			}
			s.nodes = append(s.nodes, node{uint32(i), uint32(end), self + 1, kind, 0})
			i = end
		}
		// A value has ended at i: close what ends with it, or go to the next one.
		for {
			i = s.space(i)
			if level == 0 {
				if i != n {
					return syntax(i)
				}
				return nil
			}
			c := s.at(i)
			top := &s.nodes[s.open[level-1]]
			if c == ',' {
				i = s.space(i + 1)
				if top.kind == Object {
					var err *Error
					if i, err = s.key(i); err != nil {
						return err
					}
				}
				break
			}
			if c != closers[top.kind] {
				return syntax(i)
			}
			i++
			top.end = uint32(i)
			top.next = uint32(len(s.nodes))
			level--
		}
	}
}

// enter begins the container whose bracket stands at i and returns where its
// first value begins; an empty one ends at once and is not entered.
func (s *scanner) enter(i, level int) (next int, entered bool, err *Error) {
	if level == s.depth {
		return 0, false, &Error{TooDeep, i}
	}
	kind := Object
	if s.at(i) == '[' {
		kind = Array
	}
	self := uint32(len(s.nodes))
	next = s.space(i + 1)
	if s.at(next) == closers[kind] {
		s.nodes = append(s.nodes, node{uint32(i), uint32(next + 1), self + 1, kind, 0})
		return next + 1, false, nil
	}
	s.nodes = append(s.nodes, node{uint32(i), 0, 0, kind, 0})
	if level == len(s.open) {
		s.open = append(s.open, self)
	}
	s.open[level] = self
	if kind == Object {
		next, err = s.key(next)
	}
	return next, true, err
}

var closers = [Object + 1]byte{Array: ']', Object: '}'}

// key scans a member's name and its colon, and returns where the value begins.
func (s *scanner) key(i int) (int, *Error) {
	if s.at(i) != '"' {
		return 0, syntax(i)
	}
	end, flags, err := s.str(i)
	if err != nil {
		return 0, err
	}
	s.nodes = append(s.nodes, node{uint32(i), uint32(end), uint32(len(s.nodes)) + 1, String, flags})
	i = s.space(end)
	if s.at(i) != ':' {
		return 0, syntax(i)
	}
	return s.space(i + 1), nil
}

// scalar scans a number or a literal that begins with c. An Absent kind means
// that there is none; the offset then names the byte that is wrong.
func (s *scanner) scalar(i int, c byte) (int, Kind) {
	switch c {
	case 't':
		if uint32(s.load(i)) == 't'|'r'<<8|'u'<<16|'e'<<24 {
			return i + 4, True
		}
	case 'f':
		if s.load(i)&(1<<40-1) == 'f'|'a'<<8|'l'<<16|'s'<<24|'e'<<32 {
			return i + 5, False
		}
	case 'n':
		if uint32(s.load(i)) == 'n'|'u'<<8|'l'<<16|'l'<<24 {
			return i + 4, Null
		}
	default:
		return s.number(i)
	}
	// A literal that the text's end cut off counts as cut off, not as wrong.
	for s.at(i) >= 'a' && s.at(i) <= 'z' {
		i++
	}
	return i, Absent
}

func (s *scanner) digits(i int) int {
	for s.at(i)-'0' <= 9 {
		i++
	}
	return i
}

func (s *scanner) number(i int) (int, Kind) {
	if s.at(i) == '-' {
		i++
	}
	switch c := s.at(i); {
	case c == '0':
		i++
	case c-'1' <= 8:
		i = s.digits(i + 1)
	default:
		return i, Absent
	}
	if s.at(i) == '.' {
		first := i + 1
		if i = s.digits(first); i == first {
			return i, Absent
		}
	}
	if s.at(i)|0x20 == 'e' {
		i++
		if c := s.at(i); c == '+' || c == '-' {
			i++
		}
		first := i
		if i = s.digits(first); i == first {
			return i, Absent
		}
	}
	return i, Number
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain has a high bit set for each byte of w that ends a run of plain ASCII:
// a quote, a backslash, a control byte or a byte of a longer character. Above
// the first such byte the mask may have false bits.
func plain(w uint64) uint64 {
	quote := w ^ (ones * '"')
	slash := w ^ (ones * '\\')
	return ((quote - ones) | (slash - ones) | (w - ones*0x20) | w) & highs
}

// mended is U+FFFD as a half of a surrogate pair is spelled, in as many bytes.
var mended = [6]byte{'\\', 'u', 'f', 'f', 'f', 'd'}

// str scans the string whose quote stands at i and returns the offset behind
// its closing quote.
func (s *scanner) str(i int) (int, uint8, *Error) {
	i++
	var flags uint8
	for long := i + longBytes; ; {
		m := plain(s.load(i))
		if m == 0 {
			if i += 8; i == long && flags == 0 {
				i, flags = s.long(i)
			}
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		switch c := s.at(i); {
		case c == '"':
			return i + 1, flags, nil
		case c == '\\':
			flags |= flagEscaped
			if shortEscapes[s.at(i+1)] {
				i += 2
				continue
			}
			if unit := HexUnit(uint32(s.load(i + 2))); s.at(i+1) == 'u' && unit <= 0xFFFF {
				if unit&0xF800 != 0xD800 {
					i += 6
					continue
				}
				// A half, unless the other one follows.
				if s.mend && (unit >= 0xDC00 || uint16(s.load(i+6)) != '\\'|'u'<<8) {
					*(*[6]byte)(unsafe.Add(s.base, i)) = mended
					i += 6
					continue
				}
			}
			end, lone := s.escape(i)
			if end < 0 {
				return 0, 0, syntax(-end)
			}
			switch {
			case lone && s.mend:
				*(*[6]byte)(unsafe.Add(s.base, i)) = mended
			case lone:
				flags |= flagLone
				s.lone = true
			}
			i = end
		case c < 0x20:
			return 0, 0, syntax(i)
		case c < 0x80: // a false bit of plain cannot be the first; kept for safety
			i++
		default:
			end := s.runes(i)
			if end < 0 {
				return 0, 0, &Error{NotUTF8, -end}
			}
			i = end
		}
	}
}

// runes skips characters of two to four bytes from i on, and returns the offset
// of the next ASCII byte, or the negative offset of a byte that is not UTF-8.
func (s *scanner) runes(i int) int {
	for {
		c := s.at(i)
		if c < 0x80 {
			// A space or a letter between two longer characters.
			if s.at(i+1) >= 0x80 && c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			return i
		}
		if c >= 0xC2 && c <= 0xDF && s.at(i+1)&0xC0 == 0x80 {
			i += 2
			continue
		}
		n := runeLen(c, s.at(i+1))
		if n == 0 {
			return -i
		}
		for k := 2; k < n; k++ {
			if s.at(i+k)&0xC0 != 0x80 {
				return -i
			}
		}
		i += n
	}
}

// runeLen is the length of a character that begins with the bytes c and c1
// (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF), or 0.
func runeLen(c, c1 byte) int {
	switch {
	case c1&0xC0 != 0x80:
		return 0
	case c >= 0xC2 && c <= 0xDF:
		return 2
	case c == 0xE0 && c1 < 0xA0, c == 0xED && c1 > 0x9F:
		return 0
	case c >= 0xE0 && c <= 0xEF:
		return 3
	case c == 0xF0 && c1 < 0x90, c == 0xF4 && c1 > 0x8F:
		return 0
	case c >= 0xF0 && c <= 0xF4:
		return 4
	}
	return 0
}

// escape skips the escape whose backslash stands at i, a surrogate pair as one.
// It returns the negative offset of the byte that is wrong, and whether half of
// a pair was found.
func (s *scanner) escape(i int) (end int, lone bool) {
	if shortEscapes[s.at(i+1)] {
		return i + 2, false
	}
	if s.at(i+1) != 'u' {
		return -(i + 1), false
	}
	unit, bad := s.unit(i + 2)
	if bad != 0 {
		return -bad, false
	}
	if unit&0xF800 != 0xD800 {
		return i + 6, false
	}
	if unit < 0xDC00 && s.at(i+6) == '\\' && s.at(i+7) == 'u' {
		low, bad := s.unit(i + 8)
		if bad != 0 {
			return -bad, false
		}
		if low&0xFC00 == 0xDC00 {
			return i + 12, false
		}
	}
	return i + 6, true
}

// unit reads four hexadecimal digits; bad is the offset of the first byte that
// is none.
func (s *scanner) unit(i int) (unit uint32, bad int) {
	w := uint32(s.load(i))
	unit = HexUnit(w)
	if unit > 0xFFFF {
		for bad = i; hexValues[s.at(bad)] != hexWrong; {
			bad++
		}
		return 0, bad
	}
	return unit, 0
}

// HexUnit is the value of four hexadecimal digits, the first of them in the low
// byte of w; above 0xFFFF where a byte is none.
func HexUnit(w uint32) uint32 {
	return hexValues[w&0xFF]<<12 | hexValues[w>>8&0xFF]<<8 | hexValues[w>>16&0xFF]<<4 | hexValues[w>>24]
}

// hexWrong marks what is no hexadecimal digit: in any place of HexUnit it makes
// the value too large.
const hexWrong = 1 << 16

var hexValues = func() (t [256]uint32) {
	for i := range t {
		t[i] = hexWrong
	}
	for i := range 10 {
		t['0'+i] = uint32(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = uint32(10+i), uint32(10+i)
	}
	return t
}()
