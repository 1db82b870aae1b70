package hostile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
)

// updates is an Envoy whose listener for clients comes from a file.
type updates struct {
	*world
	path     string
	listener any
}

// newUpdates takes the listener out of the shipped file and puts it where Envoy watches.
func newUpdates(t *testing.T) *updates {
	t.Helper()
	u := &updates{path: filepath.Join(t.TempDir(), "listeners.json")}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	// An update may not move the listener, so its port cannot be left to the system.
	u.world = newWorld(t, envoy.Options{Listen: free.Addr().String(), Edits: []envoy.Edit{u.fromFile}})
	return u
}

func (u *updates) fromFile(c *envoy.Config) error {
	place := envoy.Listener[:2]
	list, err := c.Get(place...)
	if err != nil {
		return err
	}
	var rest []any
	for _, l := range list.([]any) {
		if l.(map[string]any)["name"] == "openai" {
			u.listener = l
		} else {
			rest = append(rest, l)
		}
	}
	if u.listener == nil {
		return errors.New("the file has no listener for clients")
	}
	if err := u.write(u.listener); err != nil {
		return err
	}
	return errors.Join(
		c.Set(rest, place...),
		c.Add(map[string]any{"id": "hostile", "cluster": "hostile"}, "node"),
		c.Add(map[string]any{"lds_config": map[string]any{"resource_api_version": "V3", "path_config_source": map[string]any{"path": u.path}}}, "dynamic_resources"))
}

// write puts a listener into the file, all at once, as Envoy wants it.
func (u *updates) write(listener any) error {
	l := listener.(map[string]any)
	typed := map[string]any{"@type": "type.googleapis.com/envoy.config.listener.v3.Listener"}
	for key, value := range l {
		typed[key] = value
	}
	text, err := json.Marshal(map[string]any{"resources": []any{typed}})
	if err != nil {
		return err
	}
	return u.writeText(text)
}

func (u *updates) writeText(text []byte) error {
	if err := os.WriteFile(u.path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(u.path+".new", u.path)
}

// changed is a copy of the listener in which one thing of the filter is another.
func (u *updates) changed(t *testing.T, change func(filter map[string]any)) any {
	t.Helper()
	text, err := json.Marshal(u.listener)
	if err != nil {
		t.Fatal(err)
	}
	var l any
	if err := json.Unmarshal(text, &l); err != nil {
		t.Fatal(err)
	}
	step := func(v any, path ...any) any {
		for _, p := range path {
			switch p := p.(type) {
			case string:
				v = v.(map[string]any)[p]
			case int:
				v = v.([]any)[p]
			}
		}
		return v
	}
	for _, f := range step(l, "filter_chains", 0, "filters", 0, "typed_config", "http_filters").([]any) {
		if step(f, "name") == "envoy.filters.http.wasm" {
			change(step(f, "typed_config", "config").(map[string]any))
			return l
		}
	}
	t.Fatal("the listener has no filter")
	return nil
}

// configured replaces the filter's own configuration.
func configured(text string) func(map[string]any) {
	return func(filter map[string]any) { filter["configuration"].(map[string]any)["value"] = text }
}

// counter waits until a counter of the listener's updates has gone up.
func (u *updates) counter(t *testing.T, name string, before int64) {
	t.Helper()
	var n int64
	if !await(func() bool { n = u.stats(t)["listener_manager.lds."+name]; return n > before }) {
		t.Errorf("%s is still %d", name, n)
	}
}

// TestConfigurationUpdates: good and bad updates of the listener under load. Bad ones are
// rejected and change nothing, no request fails, and what is under way ends as it began.
func TestConfigurationUpdates(t *testing.T) {
	u := newUpdates(t)
	u.heat(t)
	before := u.state(t)
	load := u.neighbour(t)
	open := u.openExchanges(t)

	// A model with a name of the operator's shows which configuration serves.
	mine := strings.Replace(question("hello", false), "anthropic/claude-sonnet-5-5", "mine", 1)
	serves := func(configuration string) bool {
		want := map[bool]int{true: 200, false: 404}[configuration != plugin]
		// A kept connection would stay with the configuration that it began with.
		r, err := u.post(t.Context(), newClient(t, false), mine)
		return err == nil && r.Status == want
	}
	named := strings.Replace(plugin, "{", `{"models":{"mine":{"upstream":"claude-sonnet-5-5"}},`, 1)
	bad := u.badUpdates(t)
	for i, b := range bad {
		good := []string{named, plugin}[i%2]
		updated := u.stats(t)["listener_manager.lds.update_success"]
		if err := u.write(u.changed(t, configured(good))); err != nil {
			t.Fatal(err)
		}
		u.counter(t, "update_success", updated)
		if !await(func() bool { return serves(good) }) {
			t.Errorf("the good update %d does not come into force", i)
		}
		load.goOn(t)
		u.rejects(t, b)
		load.goOn(t)
		if !serves(good) {
			t.Errorf("behind %s another configuration serves", b.name)
		}
	}
	open(t)
	load.stop(t)
	u.wantIdle(t)
	after := u.state(t)
	for _, line := range u.envoy.Faults()[before.faults:after.faults] {
		if !refusedUpdate.MatchString(line) {
			t.Errorf("the log has a fault: %s", line)
		}
	}
}

// refusedUpdate matches what the log says of the updates below.
var refusedUpdate = regexp.MustCompile(`Failed to (parse corrupted Wasm module|load Wasm code)|Plugin chat-completions failed to load|onfigur|restricted proxy-wasm capability: proxy_get_buffer_bytes`)

// badUpdate is a text that Envoy must not take, and the counter that says so.
type badUpdate struct {
	name    string
	text    []byte
	counter string
}

func (u *updates) badUpdates(t *testing.T) []badUpdate {
	module := func(filename string) func(map[string]any) {
		return func(filter map[string]any) {
			filter["vm_config"].(map[string]any)["code"].(map[string]any)["local"].(map[string]any)["filename"] = filename
		}
	}
	text := func(change func(map[string]any)) []byte {
		l := u.changed(t, change).(map[string]any)
		l["@type"] = "type.googleapis.com/envoy.config.listener.v3.Listener"
		encoded, err := json.Marshal(map[string]any{"resources": []any{l}})
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	return []badUpdate{
		{"an unknown key", text(configured(`{"upstreem":{}}`)), "update_rejected"},
		{"broken JSON", text(configured(`{"upstream":`)), "update_rejected"},
		{"a wrong type", text(configured(`{"caching":"no"}`)), "update_rejected"},
		{"a module that is missing", text(module("/nowhere/module.wasm")), "update_rejected"},
		{"a module that is none", text(module(u.path)), "update_rejected"},
		{"a capability that is missing", text(func(filter map[string]any) {
			delete(filter["capability_restriction_config"].(map[string]any)["allowed_capabilities"].(map[string]any), "proxy_get_buffer_bytes")
		}), "update_rejected"},
		{"a broken file", []byte(`{"resources":[`), "update_failure"},
	}
}

func (u *updates) rejects(t *testing.T, b badUpdate) {
	t.Helper()
	before := u.stats(t)["listener_manager.lds."+b.counter]
	if err := u.writeText(b.text); err != nil {
		t.Fatal(err)
	}
	t.Log(b.name)
	u.counter(t, b.counter, before)
}

// openExchanges begins two streams, a whole answer and an upload. The function that it
// returns lets them go on, and wants their ends.
func (u *updates) openExchanges(t *testing.T) (end func(*testing.T)) {
	t.Helper()
	goOn := make(chan struct{})
	begun := make(chan struct{}, 3)
	gated := func(head, text string) func(net.Conn) {
		return func(conn net.Conn) {
			io.WriteString(conn, head+text[:len(text)/2])
			begun <- struct{}{}
			<-goOn
			io.WriteString(conn, text[len(text)/2:])
		}
	}
	u.up.play("open stream", gated(eventHead, events))
	u.up.play("open answer", gated(wholeHead+fmt.Sprintf("content-length: %d\r\n\r\n", len(message)), message))
	var all sync.WaitGroup
	for _, stream := range []bool{true, true, false} {
		play := map[bool]string{true: "open stream", false: "open answer"}[stream]
		all.Go(func() {
			r, err := u.post(t.Context(), newClient(t, false), question("play:"+play+";", stream))
			if err == nil {
				err = r.wantText("hello", stream)
			}
			if err != nil {
				t.Errorf("an exchange that was open, stream: %v: %v", stream, err)
			}
		})
	}
	for range 3 {
		select {
		case <-begun:
		case <-time.After(patience):
			t.Fatal("nothing goes up")
		}
	}
	mark := u.mark()
	upload := raw(question("Repeat after me: "+mark, false), "connection: close")
	conn := u.dial(t)
	if _, err := io.WriteString(conn, upload[:len(upload)-20]); err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T) {
		close(goOn)
		all.Wait()
		if _, err := io.WriteString(conn, upload[len(upload)-20:]); err != nil {
			t.Errorf("an upload that was open: %v", err)
		}
		status, body, err := finish(conn)
		if err == nil {
			err = reply{Status: status, Body: body}.wantText(mark, false)
		}
		if err != nil {
			t.Errorf("an upload that was open: %v", err)
		}
	}
}
