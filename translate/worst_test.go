package translate

import (
	"strings"
	"testing"

	"ezat.io/chat-completions/translate/cases/worst"
)

// What may be written for what was read (decision 54): so many times its bytes,
// and some for what is always there.
const (
	writtenTimes     = 4
	writtenBaseBytes = 64 << 10
	refusalBytesMax  = 4 << 10
)

// written is how many bytes a body becomes, or the refusal.
func written(p *Parser, env *Env, body []byte) (bytes int, refused *Error) {
	defer p.Release()
	r, refused := p.Parse(body)
	if refused != nil {
		return 0, refused
	}
	plan, refused := Decide(r, env)
	if refused != nil {
		return 0, refused
	}
	images := make([]Image, len(plan.Fetches))
	for i := range images {
		images[i] = Image{Type: "image/png", Data: make([]byte, 1<<10)}
	}
	plan.Resolve(images)
	plan.Write(func(piece []byte) { bytes += len(piece) })
	return bytes, nil
}

// checkWritten holds one body to the bound. read counts downloads too.
func checkWritten(t *testing.T, p *Parser, name string, body []byte) (good bool) {
	t.Helper()
	const downloads = 20 << 10
	n, refused := written(p, plainEnv(), body)
	switch {
	case refused != nil && len(AppendEnvelope(nil, refused)) > refusalBytesMax:
		t.Errorf("%s: %d bytes are refused with %d bytes", name, len(body), len(AppendEnvelope(nil, refused)))
	case n > writtenTimes*(len(body)+downloads)+writtenBaseBytes:
		t.Errorf("%s: %d bytes become %d", name, len(body), n)
	}
	return refused == nil
}

// TestWrittenInProportion: whatever a client sends, what goes upstream is at most a
// few times as long, and a refusal is short.
func TestWrittenInProportion(t *testing.T) {
	p := Parser{Images: ImagePolicy{HTTP: true, HTTPS: true}}
	good := 0
	for _, b := range worst.Bodies() {
		for _, size := range []int{64 << 10, 1 << 20} {
			if checkWritten(t, &p, b.Name, b.Make(size)) {
				good++
			}
		}
	}
	if good < 150 {
		t.Errorf("only %d of the bodies are good: the others prove little", good)
	}
	good = 0
	for seed := range uint64(3000) {
		body := worst.Generated(seed, int(1+seed%8)<<10)
		if checkWritten(t, &p, "generated", body) {
			good++
		} else if seed < 3 {
			_, refused := written(&p, plainEnv(), body)
			t.Logf("seed %d: %v", seed, refused)
		}
	}
	if good < 300 {
		t.Errorf("only %d of the generated bodies are good", good)
	}
}

// TestLongestBodies is the same at the size that a body may have at most.
func TestLongestBodies(t *testing.T) {
	p := Parser{Images: ImagePolicy{HTTP: true, HTTPS: true}}
	for _, b := range worst.Bodies() {
		if strings.HasSuffix(b.Name, ", tight") {
			checkWritten(t, &p, b.Name, b.Make(BodyBytesMax))
		}
	}
	for _, results := range []bool{false, true} {
		checkWritten(t, &p, "ids", worst.LengthenedIDs(8<<20, 1000, results))
	}
}

// TestLimitsOfTheWorst: the bodies are made for the limits that are.
func TestLimitsOfTheWorst(t *testing.T) {
	if worst.ValuesMax != bodyValuesMax || worst.MembersMax != membersMax || worst.BodyBytesMax != BodyBytesMax {
		t.Error("the limits in package worst are others")
	}
}
