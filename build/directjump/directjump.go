// Package directjump makes the jumps in a WebAssembly module of the standard Go
// compiler direct.
//
// Go's wasm back end gives every function one loop with a br_table at its top. A
// jump to another basic block stores the block's number in a local, called PC_B,
// and branches to the loop, so that each jump goes through the table. [Treat]
// replaces a jump whose target block is still open at that place by one branch
// to the end of that block, puts tests for the numbers that are frequent in front
// of the table, and leaves everything else as it is.
//
// README.md says why that is right and what it gives.
package directjump

import "fmt"

// Stats counts what [Treat] found and did. All sizes are in bytes.
type Stats struct {
	Functions   int // functions with a body
	Dispatching int // of these, functions with a dispatch table
	Jumps       int // jumps through a table in the module that came in
	Direct      int // of these, jumps that are direct now
	Conditional int // of the direct ones, those that became a br_if
	Kept        int // of the direct ones, those that still store PC_B
	Tests       int // tests in front of the tables
	BytesIn     int
	BytesOut    int
}

// String is one line for a build's log.
func (s Stats) String() string {
	share := 0.0
	if s.Jumps > 0 {
		share = 100 * float64(s.Direct) / float64(s.Jumps)
	}
	return fmt.Sprintf("%d of %d jumps direct (%.1f %%), %d of them conditional, %d with PC_B kept; %d of %d functions dispatch, with %d tests; %d bytes became %d",
		s.Direct, s.Jumps, share, s.Conditional, s.Kept, s.Dispatching, s.Functions, s.Tests, s.BytesIn, s.BytesOut)
}

// Error says what was not understood, and where.
type Error struct {
	// Function is the index in the module's function index space, in which
	// imported functions come first, or -1 outside of a function's body.
	Function int
	// Offset is in bytes from the start of the module.
	Offset int
	Reason string
}

func (e *Error) Error() string {
	if e.Function < 0 {
		return fmt.Sprintf("offset 0x%x: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("function %d, offset 0x%x: %s", e.Function, e.Offset, e.Reason)
}

// Treat returns the module with direct jumps. The module must be as Go's linker
// wrote it, or at least no other tool may have changed its functions. Sections
// other than the code section are copied byte for byte.
//
// The error is an [*Error] for a module that has anything in it that Treat does
// not understand; there is no output then. A module without a single dispatch
// table is such a module: it does not come from Go. So is one that was treated
// already. Time and memory are linear in the module's size.
func Treat(module []byte) ([]byte, Stats, error) {
	m, err := parse(module)
	if err != nil {
		return nil, Stats{}, err
	}
	stats := Stats{Functions: len(m.bodies), BytesIn: len(module)}
	s := scanner{module: m}
	treated := make([][]byte, len(m.bodies))
	for i, body := range m.bodies {
		if err := s.scan(i, body); err != nil {
			return nil, Stats{}, err
		}
		stats.add(&s)
		treated[i] = s.apply()
	}
	if stats.Dispatching == 0 {
		return nil, Stats{}, &Error{Function: -1, Reason: "no function has a dispatch table: not a module of the Go compiler, or another tool has changed it"}
	}
	out := m.write(treated)
	if err := verify(m, out); err != nil {
		return nil, Stats{}, fmt.Errorf("the treated module is wrong, which is a bug: %w", err)
	}
	stats.BytesOut = len(out)
	return out, stats, nil
}

func (t *Stats) add(s *scanner) {
	if s.table != nil {
		t.Dispatching++
	}
	t.Jumps += s.jumps
	t.Direct += len(s.edits)
	t.Tests += len(s.tests)
	for _, e := range s.edits {
		switch {
		case s.keep:
			t.Kept++
		case e.conditional():
			t.Conditional++
		}
	}
}
