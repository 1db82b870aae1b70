package envoy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const small = `
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 9901}}
lists:
  numbers: [1, 2, 3]
  named:
  - name: a
    value: 1
  - name: b
    value: 2
  # A text that stands before the example.
  # >>> extra
  # - name: c
  #   value: 3
  # <<< extra
# >>> extra
# more:
#   here: true
# <<< extra
`

func parse(t *testing.T, examples ...string) *Config {
	t.Helper()
	c, err := ParseConfig([]byte(small), examples...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPlaces(t *testing.T) {
	c := parse(t)
	for _, test := range []struct {
		place []any
		want  any // nil: no such place
	}{
		{[]any{"admin", "address", "socket_address", "port_value"}, 9901},
		{[]any{"lists", "numbers", 2}, 3},
		{[]any{"lists", "numbers", 3}, nil},
		{[]any{"lists", "numbers", -1}, nil},
		{[]any{"lists", "numbers", "1"}, nil},
		{[]any{"lists", "named", "b", "value"}, 2},
		{[]any{"lists", "named", 0, "name"}, "a"},
		{[]any{"lists", "named", "c"}, nil},
		{[]any{"admin", 0}, nil},
		{[]any{"admin", "address", "socket_address", "port_value", "deeper"}, nil},
		{[]any{"nowhere"}, nil},
	} {
		got, err := c.Get(test.place...)
		if (err == nil) != (test.want != nil) || got != test.want {
			t.Errorf("%s: %v, %v; want %v", show(test.place), got, err, test.want)
		}
	}
}

func TestChangesNeedTheirPlace(t *testing.T) {
	c := parse(t)
	for name, err := range map[string]error{
		"set a key that is not there":            c.Set(1, "admin", "adress"),
		"set an element that is not there":       c.Set(1, "lists", "numbers", 7),
		"set the root":                           c.Set(1),
		"add a key that is there":                c.Add(1, "admin", "address"),
		"add a key to a list":                    c.Add(1, "lists", "numbers", "x"),
		"remove a key that is not there":         c.Remove("lists", "more"),
		"remove an element of a list":            c.Remove("lists", "numbers", 0),
		"insert before what is not there":        c.InsertBefore(1, "lists", "named", "x"),
		"insert before the key of a mapping":     c.InsertBefore(1, "lists", "named"),
		"an address without a port":              c.setAddress("127.0.0.1", "admin", "address"),
		"an address with a port that is no port": c.setAddress("127.0.0.1:70000", "admin", "address"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if before, after := parse(t), c; !same(t, before, after) {
		t.Error("a change that failed has changed something")
	}
}

func TestChanges(t *testing.T) {
	c := parse(t)
	for name, err := range map[string]error{
		"set":    c.Set(5, "lists", "numbers", 0),
		"add":    c.Add("x", "lists", "new"),
		"remove": c.Remove("admin"),
		"insert": c.InsertBefore(map[string]any{"name": "between"}, "lists", "named", "b"),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"lists":{"named":[{"name":"a","value":1},{"name":"between"},{"name":"b","value":2}],"new":"x","numbers":[5,2,3]}}`
	if compact(t, got) != want {
		t.Errorf("got  %s\nwant %s", compact(t, got), want)
	}
}

func TestExamples(t *testing.T) {
	c := parse(t, "extra")
	for _, place := range [][]any{{"lists", "named", "c", "value"}, {"more", "here"}} {
		if _, err := c.Get(place...); err != nil {
			t.Error(err)
		}
	}
	for name, text := range map[string]string{
		"no such example": "a: 1\n",
		"no end":          "a: 1\n# >>> x\n# b: 2\n",
		"no comment":      "a: 1\n# >>> x\nb: 2\n# <<< x\n",
		"another's end":   "a: 1\n# >>> x\n# b: 2\n# <<< y\n",
	} {
		if _, err := ParseConfig([]byte(text), "x"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestUpstreams(t *testing.T) {
	for text, want := range map[string]upstream{
		"127.0.0.1:81":                {false, "127.0.0.1", "81"},
		"http://127.0.0.1:81":         {false, "127.0.0.1", "81"},
		"http://example.test":         {false, "example.test", "80"},
		"https://example.test":        {true, "example.test", "443"},
		"https://[::1]:8443/":         {true, "::1", "8443"},
		"https://example.test/v1":     {},
		"https://key@example.test":    {},
		"ftp://example.test":          {},
		"https://example.test?beta=1": {},
		"":                            {},
	} {
		got, err := parseUpstream(text)
		if (err == nil) != (want.host != "") || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

// stub makes an empty file in place of the module, for tests that start nothing.
func stub(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "module.wasm")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOnlyTheNamedPlacesChange holds what runs in tests against the file.
func TestOnlyTheNamedPlacesChange(t *testing.T) {
	shipped := flatten(t, shippedConfig(t))
	run, err := Configuration(Options{Module: stub(t), Upstreams: []string{"127.0.0.1:9"}})
	if err != nil {
		t.Fatal(err)
	}
	changed := flatten(t, run)
	var differs []string
	for place, value := range shipped {
		if changed[place] != value && !strings.HasPrefix(place, "/static_resources/clusters/0/transport_socket") {
			differs = append(differs, place)
		}
		delete(changed, place)
	}
	for place := range changed {
		differs = append(differs, "new: "+place)
	}
	slices.Sort(differs)
	want := []string{
		"/admin/address/socket_address/port_value",
		"/static_resources/clusters/0/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/address",
		"/static_resources/clusters/0/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/port_value",
		"/static_resources/listeners/0/address/socket_address/port_value",
		"/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters/1/typed_config/config/vm_config/code/local/filename",
	}
	if !slices.Equal(differs, want) {
		t.Errorf("changed:\n%s\nwant:\n%s", strings.Join(differs, "\n"), strings.Join(want, "\n"))
	}
}

// TestEditsFit tries every edit on the shipped file: all places must be there.
func TestEditsFit(t *testing.T) {
	_, err := Configuration(Options{
		Module:     stub(t),
		Upstreams:  []string{"https://example.test", "https://example.test:8443"},
		UpstreamCA: "ca.pem",
		Listen:     "0.0.0.0:10000",
		Examples:   []string{"client-tls", "gateway"},
		Edits: []Edit{
			MaxConnections(3), MaxHeap(1 << 30), BufferLimit(1 << 20), RequestTimeouts(time.Second, time.Minute),
			IdleTimeouts(time.Second, 1500*time.Millisecond), WholeAnswer(time.Second),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnotherUpstreamIsNamedEverywhere(t *testing.T) {
	c, err := Configuration(Options{Module: stub(t), Upstreams: []string{"https://example.test"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "api.anthropic.com") {
		t.Error("the shipped upstream's name is still in the configuration")
	}
	if n := strings.Count(string(text), "example.test"); n != 3 {
		t.Errorf("the new name is there %d times, want 3: address, sni, authority", n)
	}
}

func TestParseAccess(t *testing.T) {
	line := `2026-11-30T20:05:07.644Z "POST /v1/messages HTTP/1.1" 200 flags=- details=via_upstream received=7 usage={"model":"a \"b\" usage= c","status":200}`
	a, err := ParseAccess(line)
	if err != nil {
		t.Fatal(err)
	}
	if a.Method != "POST" || a.Path != "/v1/messages" || a.Status != "200" || a.Fields["details"] != "via_upstream" {
		t.Errorf("%+v", a)
	}
	var usage struct{ Model string }
	if err := json.Unmarshal(a.Usage, &usage); err != nil || usage.Model != `a "b" usage= c` {
		t.Errorf("usage %q, %v", usage.Model, err)
	}
	for _, bad := range []string{"", "x", strings.Replace(line, "flags=-", "flags", 1), strings.Replace(line, "}", "", 1)} {
		if _, err := ParseAccess(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// shippedConfig reads the file as it is.
func shippedConfig(t *testing.T) *Config {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, "envoy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig(source)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// flatten lists every value by its place.
func flatten(t *testing.T, c *Config) map[string]string {
	t.Helper()
	encoded, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var root any
	if err := json.Unmarshal(encoded, &root); err != nil {
		t.Fatal(err)
	}
	flat := map[string]string{}
	var walk func(place string, v any)
	walk = func(place string, v any) {
		switch n := v.(type) {
		case map[string]any:
			for key, v := range n {
				walk(place+"/"+key, v)
			}
		case []any:
			for i, v := range n {
				walk(place+"/"+string(rune('0'+i)), v)
			}
		default:
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			flat[place] = string(text)
		}
	}
	walk("", root)
	return flat
}

func compact(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func same(t *testing.T, a, b *Config) bool {
	t.Helper()
	left, err := a.JSON()
	if err != nil {
		t.Fatal(err)
	}
	right, err := b.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(left) == string(right)
}
