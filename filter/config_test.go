package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ezat.io/chat-completions/translate"
)

// wholeConfig is operator.md's example, every key of it.
const wholeConfig = `{
  "route_prefix": "/openai/v1",
  "upstream": {
    "authority": "",
    "cluster": "",
    "messages_path": "/v1/messages",
    "models_path": "/v1/models",
    "anthropic_version": "2023-06-01",
    "credentials": "client",
    "model_prefix": "anthropic/"
  },
  "models": {
    "anthropic/claude-sonnet-5-5": {
      "upstream": "claude-sonnet-5-5",
      "max_output_tokens": 128000,
      "sampling": false,
      "caching": true,
      "thinking": true,
      "effort": ["low", "medium", "high", "xhigh", "max"]
    }
  },
  "unknown_models": "forward",
  "hold_headers": true,
  "caching": true,
  "images": {
    "http_cluster": "image_http",
    "https_cluster": "image_https",
    "allow_private": false,
    "memory_bytes": 268435456
  }
}`

func pointerTo[T any](v T) *T { return &v }

func TestEmptyConfigurationIsTheExampleOfOperators(t *testing.T) {
	whole, faults := parseConfig([]byte(wholeConfig))
	if faults != nil {
		t.Fatal(faults)
	}
	want := defaultConfig()
	want.models = []translate.ModelEntry{{
		Name: "anthropic/claude-sonnet-5-5", Upstream: pointerTo("claude-sonnet-5-5"), MaxOutputTokens: pointerTo(128000),
		Sampling: pointerTo(false), Caching: pointerTo(true), Thinking: pointerTo(true),
		Effort: pointerTo([]string{"low", "medium", "high", "xhigh", "max"}),
	}}
	if !reflect.DeepEqual(whole, want) {
		t.Errorf("%+v\nwant %+v", whole, want)
	}
	for _, empty := range []string{"", " \n", "{}", " { } "} {
		c, faults := parseConfig([]byte(empty))
		if faults != nil || !reflect.DeepEqual(c, defaultConfig()) {
			t.Errorf("%q: %+v %q", empty, c, faults)
		}
	}
}

func TestConfigurationIsRead(t *testing.T) {
	c, faults := parseConfig([]byte(`{"route_prefix":"/x/y","upstream":{"authority":"api.test:8443","cluster":"c-1","messages_path":"/m",
		"models_path":"/n/o","anthropic_version":"v","credentials":"gateway","model_prefix":""},"models":{"a":{"effort":["max","low"]},"b":{}},
		"unknown_models":"refuse","hold_headers":false,"caching":false,
		"images":{"http_cluster":"","https_cluster":"e","allow_private":true,"memory_bytes":2.68435456e8}}`))
	if faults != nil {
		t.Fatal(faults)
	}
	want := config{
		routePrefix: "/x/y", authority: "api.test:8443", cluster: "c-1", messagesPath: "/m", modelsPath: "/n/o", version: "v",
		credentials: gatewayKey, models: []translate.ModelEntry{{Name: "a", Effort: pointerTo([]string{"low", "max"})}, {Name: "b"}},
		refuseUnknown: true, images: imagesConfig{httpsCluster: "e", allowPrivate: true, memoryBytes: 268_435_456},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v\nwant %+v", c, want)
	}
}

func TestConfigurationFaults(t *testing.T) {
	for _, c := range []struct {
		src  string
		want []string
	}{
		{`[]`, []string{"configuration: must be an object"}},
		{`null`, []string{"configuration: must be an object"}},
		{`{`, []string{"configuration: is not JSON: a key is missing (byte 1)"}},
		{`{}x`, []string{"configuration: has something behind its end (byte 2)"}},
		{"{\"route_prefix\":\"\xff\"}", []string{"configuration: is not UTF-8"}},
		{`{"a":1,"b":{"c":[]},"":2}`, []string{`a: is not a known key`, `b: is not a known key`, `[""]: is not a known key`}},
		{`{"caching":true,"caching":true}`, []string{`caching: is there twice`}},
		{`{"upstream":{"cluster":"a","cluster":"b"}}`, []string{`upstream.cluster: is there twice`}},
		{`{"models":{"a":{},"a":{}}}`, []string{`models.a: is there twice`}},
		{`{"caching":null}`, []string{`caching: must be true or false`}},
		{`{"caching":"true"}`, []string{`caching: must be true or false`}},
		{`{"hold_headers":1}`, []string{`hold_headers: must be true or false`}},
		{`{"route_prefix":7}`, []string{`route_prefix: must be a string`}},
		{`{"route_prefix":""}`, []string{`route_prefix: must name at least one segment`}},
		{`{"route_prefix":"/"}`, []string{`route_prefix: must name at least one segment`}},
		{`{"route_prefix":"/a/"}`, []string{`route_prefix: must not end in a slash`}},
		{`{"route_prefix":"a"}`, []string{`route_prefix: must begin with a slash`}},
		{`{"route_prefix":"/a//b"}`, []string{`route_prefix: must not have empty or dot segments`}},
		{`{"route_prefix":"/a/../b"}`, []string{`route_prefix: must not have empty or dot segments`}},
		{`{"route_prefix":"/a?b"}`, []string{`route_prefix: must be a plain path`}},
		{`{"route_prefix":"/a%20"}`, []string{`route_prefix: must be a plain path`}},
		{`{"upstream":[]}`, []string{`upstream: must be an object`}},
		{`{"upstream":{"messages_path":"/a b"}}`, []string{`upstream.messages_path: must be a plain path`}},
		{`{"upstream":{"models_path":"x"}}`, []string{`upstream.models_path: must begin with a slash`}},
		{`{"upstream":{"authority":"a/b"}}`, []string{`upstream.authority: must be a host, or a host and a port`}},
		{`{"upstream":{"authority":"a\r\nb"}}`, []string{`upstream.authority: must be a host, or a host and a port`}},
		{`{"upstream":{"anthropic_version":""}}`, []string{`upstream.anthropic_version: must not be empty`}},
		{`{"upstream":{"anthropic_version":"a\nb"}}`, []string{`upstream.anthropic_version: must be of printable ASCII characters`}},
		{`{"upstream":{"credentials":"none"}}`, []string{`upstream.credentials: use one of client, bearer, gateway`}},
		{`{"upstream":{"credentials":true}}`, []string{`upstream.credentials: must be a string`}},
		{`{"upstream":{"cluster":"` + strings.Repeat("x", 300) + `"}}`, []string{`upstream.cluster: is too long`}},
		{`{"unknown_models":"x"}`, []string{`unknown_models: use one of forward, refuse`}},
		{`{"models":[]}`, []string{`models: must be an object`}},
		{`{"models":{"":{}}}`, []string{`models[""]: is not a model's name`}},
		{`{"models":{"a/b":{"upstream":"","x":1}}}`, []string{`models["a/b"].upstream: is not a model's name`, `models["a/b"].x: is not a known key`}},
		{`{"models":{"a\n\"b":{"x":1}}}`, []string{`models["a??b"]: is not a model's name`}},
		{`{"models":{"a":{"max_output_tokens":0}}}`, []string{`models.a.max_output_tokens: must be from 1 to 100000000`}},
		{`{"models":{"a":{"max_output_tokens":1.5}}}`, []string{`models.a.max_output_tokens: must be a whole number`}},
		{`{"models":{"a":{"max_output_tokens":"1"}}}`, []string{`models.a.max_output_tokens: must be a whole number`}},
		{`{"models":{"a":{"max_output_tokens":1e99}}}`, []string{`models.a.max_output_tokens: must be from 1 to 100000000`}},
		{`{"models":{"a":{"max_output_tokens":-3}}}`, []string{`models.a.max_output_tokens: must be from 1 to 100000000`}},
		{`{"models":{"a":{"effort":"low"}}}`, []string{`models.a.effort: must be an array`}},
		{`{"models":{"a":{"effort":["low","lowest",1,"low"]}}}`, []string{
			`models.a.effort[1]: use one of low, medium, high, xhigh, max`, `models.a.effort[2]: must be a string`, `models.a.effort[3]: is there twice`}},
		{`{"models":{"a":{"sampling":0,"caching":0,"thinking":0}}}`, []string{
			`models.a.sampling: must be true or false`, `models.a.caching: must be true or false`, `models.a.thinking: must be true or false`}},
		{`{"images":{"memory_bytes":1e9223372036854775807},"models":{"a":{"max_output_tokens":1e-9223372036854775807}}}`, []string{
			`images.memory_bytes: must be from 10485760 to 268435456`, `models.a.max_output_tokens: must be a whole number`}},
		{"{\"a\u2028b\u0085\":1}", []string{`["a???b??"]: is not a known key`}},
		{`{"images":{"memory_bytes":1,"allow_private":"no","x_cluster":""}}`, []string{
			`images.memory_bytes: must be from 10485760 to 268435456`, `images.allow_private: must be true or false`, `images.x_cluster: is not a known key`}},
	} {
		if _, got := parseConfig([]byte(c.src)); !slices.Equal(got, c.want) {
			t.Errorf("%s\n got %q\nwant %q", c.src, got, c.want)
		}
	}
}

func TestConfigurationIsBounded(t *testing.T) {
	for name, src := range map[string]string{
		"deep arrays":  strings.Repeat("[", 100_000),
		"deep objects": strings.Repeat(`{"a":`, 100_000),
		"long":         `{"a":"` + strings.Repeat("x", configBytesMax) + `"}`,
	} {
		if _, faults := parseConfig([]byte(src)); len(faults) != 1 {
			t.Errorf("%s: %q", name, faults)
		}
	}
	many := "{" + strings.Repeat(`"x":1,`, 500) + `"y":1}`
	if _, faults := parseConfig([]byte(many)); len(faults) != configFaultsMax+1 {
		t.Errorf("%d faults are listed", len(faults))
	}
}

func TestPluginStart(t *testing.T) {
	for _, c := range []struct {
		name, src string
		starts    bool
		want      []string
	}{
		{"empty", ``, true, []string{"info: ezat chat-completions dev"}},
		{"gateway", `{"upstream":{"credentials":"gateway"}}`, true, []string{"info: ezat chat-completions dev",
			"warn: upstream.credentials is gateway: whoever reaches the listener spends the gateway's key; put client authentication in front"}},
		{"faults", `{"a":1,"caching":0}`, false, []string{"info: ezat chat-completions dev",
			"error: configuration refused: a: is not a known key", "error: configuration refused: caching: must be true or false"}},
	} {
		h := newFakeHost(t)
		p := startPlugin(h, []byte(c.src))
		if (p != nil) != c.starts || !slices.Equal(h.logs, c.want) {
			t.Errorf("%s: started %v, log %q", c.name, p != nil, h.logs)
		}
	}
}

// FuzzParseJSON holds the configuration's parser to encoding/json: it takes
// nothing that is not JSON, and refuses no JSON but for depth, broken UTF-8
// and half surrogates. What it takes means the same.
func FuzzParseJSON(f *testing.F) {
	f.Add(wholeConfig)
	for _, seed := range []string{``, ` `, `{`, `"\ud83d\ude00\u0041\n"`, `"\ud83d"`, `-0.5e+7`, `01`, `1.`, `1e`, `-`, `[1,]`, `{"a":1,}`, `{"a" 1}`,
		`nul`, `true false`, "\"\x01\"", `"\x"`, `"\u12`, `[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		v, fault := parseJSON([]byte(src))
		var want any
		d := json.NewDecoder(strings.NewReader(src))
		d.UseNumber()
		err := d.Decode(&want)
		valid := err == nil && json.Valid([]byte(src))
		if fault == "" && !valid {
			t.Fatalf("%q is taken for JSON", src)
		}
		excused := strings.Contains(fault, "nested") || strings.Contains(fault, "UTF-8") || strings.Contains(fault, "surrogate")
		if fault != "" && valid && !excused {
			t.Fatalf("%q: %s", src, fault)
		}
		if fault == "" && !reflect.DeepEqual(plain(v), want) {
			t.Fatalf("%q: %#v, want %#v", src, plain(v), want)
		}
	})
}

// plain is a value in the form of encoding/json's.
func plain(v jsonValue) any {
	switch v.kind {
	case jsonBool:
		return v.truth
	case jsonNumber:
		return json.Number(v.text)
	case jsonString:
		return v.text
	case jsonArray:
		out := []any{}
		for _, item := range v.items {
			out = append(out, plain(item))
		}
		return out
	case jsonObject:
		out := map[string]any{}
		for _, m := range v.members {
			out[m.key] = plain(m.value)
		}
		return out
	}
	return nil
}

func TestWholeNumber(t *testing.T) {
	for s, want := range map[string]int{
		"0": 0, "-0": 0, "0.0": 0, "0e9": 0, "7": 7, "-7": -7, "128000": 128000, "128000.0": 128000, "1.28e5": 128000, "1.28E+5": 128000,
		"12800e-2": 128, "100": 100, "1e15": 1 << 53, "9007199254740993": 1 << 53, "1e400": 1 << 53, "-1e400": -1 << 53,
		"1e9223372036854775807": 1 << 53, "-1e9223372036854775807": -1 << 53, "1e99999999999999999999": 1 << 53, "7E+018446744073709551617": 1 << 53,
		"0e9223372036854775807": 0, "0.00e-99999999999999999999": 0, "1e0000000000000000000000002": 100, "1.00e-0": 1,
		"1" + strings.Repeat("0", 1_000_000) + "e-1000000": 1, "0." + strings.Repeat("0", 999_999) + "7e1000000": 7, strings.Repeat("9", 1_000_000): 1 << 53,
	} {
		if n, whole := wholeNumber(s); !whole || n != want {
			t.Errorf("%s: %d %v, want %d", s, n, whole, want)
		}
	}
	for _, s := range []string{"0.5", "1.28e1", "1e-1", "12800e-3", "1e-999999999", "1e-9223372036854775808", "1.5e-99999999999999999999",
		"0.1e-9223372036854775808", "1" + strings.Repeat("0", 1_000_000) + "e-1000001"} {
		if n, whole := wholeNumber(s); whole {
			t.Errorf("%s: %d", s, n)
		}
	}
}
