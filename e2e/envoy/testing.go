package envoy

import (
	"context"
	"strings"
)

// TB is what New needs of a *testing.T or *testing.B.
type TB interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// New starts Envoy for a test and stops it at the test's end. The logs are
// shown only when the test has failed. A fault in Envoy's log fails the test,
// unless FaultsExpected says otherwise.
func New(t TB, o Options) *Envoy {
	t.Helper()
	e, err := Start(t.Context(), o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if faults := e.Faults(); len(faults) > 0 && !o.FaultsExpected {
			t.Errorf("Envoy's log has faults:\n%s", strings.Join(faults, "\n"))
		}
		if t.Failed() {
			t.Logf("Envoy's log:\n%s\nAccess log:\n%s", e.told(60), tail(e.read("access.log"), 20))
		}
		if err := e.Stop(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return e
}
