package translate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ezat.io/chat-completions/translate/internal/hash"
)

var goodIDs = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// TestMappedIDsAreUnambiguous takes mapped ids apart again: what comes out is the
// code and the two numbers that went in, so no two uses of ids share one.
func TestMappedIDsAreUnambiguous(t *testing.T) {
	form := regexp.MustCompile(`^ezatid-((?:[A-Za-z0-9-]|_[0-9A-F]{2})*|_h[A-Za-z0-9_-]{32})(?:__(0|[1-9][0-9]*)(?:__([1-9][0-9]*))?)?$`)
	ids := []string{"", "a", "_", "__", "a b", "__1", "a__1", "ezatid-a__1", "\x00", "é", "call_0", "-", "h", "_h", "!", "/", "_21"}
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 400 {
		id := make([]byte, n%100)
		for i := range id {
			id[i] = "_-ab01!h\xff"[random.IntN(9)]
		}
		ids = append(ids, string(id))
	}
	from := map[string]string{}
	for _, id := range ids {
		for _, uses := range []int32{0, 1, 2, 10, 499_999} {
			for _, aside := range []int32{0, 1, 2, 499_999} {
				mapped := string(appendMapped(nil, []byte(id), uses, aside))
				key := fmt.Sprintf("%q %d %d", id, uses, aside)
				if other := from[mapped]; other != "" && other != key {
					t.Errorf("%s and %s both become %s", key, other, mapped)
				}
				from[mapped] = key
				m := form.FindStringSubmatch(mapped)
				if m == nil || !goodIDs.MatchString(mapped) {
					t.Fatalf("%s becomes %q", key, mapped)
				}
				code := fmt.Sprintf("%x", id)
				digest := hash.Blake([]byte(id))
				got, want := decodeCode(m[1]), code
				if strings.HasPrefix(m[1], "_h") {
					got, want = m[1], "_h"+base64URL(digest[:])
				}
				if got != want || digits(m[2]) != int(uses) || digits(m[3]) != int(aside) {
					t.Errorf("%s becomes %q, which reads as %s %s %s", key, mapped, got, m[2], m[3])
				}
			}
		}
	}
}

func digits(text string) int {
	n, _ := strconv.Atoi(text) // "" is 0
	return n
}

// decodeCode is the hexadecimal form of the id that a code stands for.
func decodeCode(code string) string {
	var id []byte
	for i := 0; i < len(code); i++ {
		if code[i] != '_' {
			id = append(id, code[i])
			continue
		}
		c, err := strconv.ParseUint(code[i+1:i+3], 16, 8)
		if err != nil {
			return err.Error()
		}
		id = append(id, byte(c))
		i += 2
	}
	return fmt.Sprintf("%x", id)
}

func base64URL(b []byte) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	var text []byte
	for ; len(b) >= 3; b = b[3:] {
		bits := uint(b[0])<<16 | uint(b[1])<<8 | uint(b[2])
		text = append(text, digits[bits>>18], digits[bits>>12&63], digits[bits>>6&63], digits[bits&63])
	}
	return string(text)
}

// idsUp sends turns of calls with their results and gives the ids as they went up:
// those of the calls, and those of the results, in the order of the calls.
func idsUp(t *testing.T, turns ...[]string) (calls, results []string) {
	t.Helper()
	messages := []string{`{"role":"user","content":"go"}`}
	quoted := func(id string) string {
		b, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for n, ids := range turns {
		var list, answers []string
		for k, id := range ids {
			list = append(list, `{"id":`+quoted(id)+`,"function":{"name":"f"}}`)
			answers = append(answers, fmt.Sprintf(`{"role":"tool","tool_call_id":%s,"content":"%d.%d"}`, quoted(id), n, k))
		}
		messages = append(append(messages, `{"role":"assistant","tool_calls":[`+strings.Join(list, ",")+`]}`), answers...)
	}
	var sent struct {
		Messages []struct {
			Content []struct {
				Type, ID  string
				ToolUseID string `json:"tool_use_id"`
			}
		}
	}
	if err := json.Unmarshal([]byte(up(t, said(strings.Join(messages, ",")), plainEnv())), &sent); err != nil {
		t.Fatal(err)
	}
	for _, m := range sent.Messages {
		for _, b := range m.Content {
			switch b.Type {
			case "tool_use":
				calls = append(calls, b.ID)
			case "tool_result":
				results = append(results, b.ToolUseID)
			}
		}
	}
	return calls, results
}

// TestIDs shows decision 15 for many conversations: every id upstream is good and
// there once, each result has its call's, first uses of good ids are untouched, and
// a longer conversation has the same ids in front.
func TestIDs(t *testing.T) {
	long := strings.Repeat("x", 65)
	collisions := []string{"!", "ezatid-_21", "ezatid-_21__0__1", "ezatid-_21__0__2", "ezatid-_21__1", "!", "ezatid-_21__1__1", "ezatid-_21"}
	for name, turns := range map[string][][]string{
		"call_0 in every turn": {{"call_0"}, {"call_0"}, {"call_0", "call_1"}, {"call_0"}},
		"three equal ids":      {{"x", "x", "x"}},
		"empty ids":            {{"", ""}, {""}},
		"long ids":             {{strings.Repeat("k", 5000), long, long[1:]}, {long, strings.Repeat("!", 30)}, {strings.Repeat("!", 30), strings.Repeat("k", 5000)}},
		"foreign ids again":    {{"functions.f:0", "functions.f:1"}, {"functions.f:0"}, {"functions.f:0", "functions.f:0"}},
		"collisions":           {collisions, {"!", "?"}, {"ezatid-_21__2"}},
		"finding":              {{"ezatid-" + strings.Repeat("_", 100_000), "ezatid-a_21", "a!", "a!"}},
	} {
		calls, results := idsUp(t, turns...)
		all := slices.Concat(turns...)
		if len(calls) != len(all) || !slices.Equal(calls, results) {
			t.Errorf("%s: calls %q, results %q", name, calls, results)
			continue
		}
		first := map[string]bool{}
		for i, id := range all {
			if !goodIDs.MatchString(calls[i]) || slices.Contains(calls[:i], calls[i]) {
				t.Errorf("%s: %.40q becomes %.80q, which is not good or not the only one", name, id, calls[i])
			}
			if goodIDs.MatchString(id) && !first[id] && calls[i] != id {
				t.Errorf("%s: the good id %q becomes %q", name, id, calls[i])
			}
			first[id] = true
		}
		if name == "collisions" {
			continue // the client's own ids of later turns move those of earlier ones
		}
		for n := range turns {
			if shorter, _ := idsUp(t, turns[:n]...); !slices.Equal(shorter, calls[:len(shorter)]) {
				t.Errorf("%s: %d turns have the ids %q, all have %q", name, n, shorter, calls)
			}
		}
	}
}

// TestMovingAsideIsLinear lets every id of the client be in the way of mapped ones.
// Trying the next one until one is free takes as many tries in all as there are
// such ids.
func TestMovingAsideIsLinear(t *testing.T) {
	const n = 20_000
	ids := []string{"!"}
	for i := range n {
		ids = append(ids, string(appendMapped(nil, []byte("!"), 0, int32(i))))
	}
	for range n {
		ids = append(ids, "!")
	}
	calls, results := idsUp(t, ids)
	if want := string(appendMapped(nil, []byte("!"), 0, n)); calls[0] != want || calls[n+1] != "ezatid-_21__1" || !slices.Equal(calls, results) {
		t.Errorf("%q and %q, want %q first", calls[0], calls[n+1], want)
	}
}
