package envoy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Config is an Envoy configuration that can be changed in places.
//
// A place is a path from the root. A string is the key of a mapping, or in a
// list the `name` of one of its elements; an int is the index of an element.
type Config struct{ root any }

// Edit is one change of a configuration.
type Edit func(*Config) error

// Places of the shipped file that many edits begin with.
var (
	// Listener is the listener for clients.
	Listener = []any{"static_resources", "listeners", "openai"}
	// HCM is the HTTP connection manager in it.
	HCM = at(Listener, "filter_chains", 0, "filters", "envoy.filters.network.http_connection_manager", "typed_config")
	// Filter is the configuration of the wasm filter.
	Filter = at(HCM, "http_filters", "envoy.filters.http.wasm", "typed_config", "config")
	// Cluster is the upstream.
	Cluster = []any{"static_resources", "clusters", "anthropic"}
	// Monitors are the resource monitors of the overload manager.
	Monitors = []any{"overload_manager", "resource_monitors"}
)

// at returns a place below another one.
func at(place []any, path ...any) []any { return append(slices.Clip(place), path...) }

// At returns a place below another one.
func At(place []any, path ...any) []any { return at(place, path...) }

// ParseConfig reads a configuration in YAML. Each of the named examples is
// switched on first; a name without an example is an error.
func ParseConfig(source []byte, examples ...string) (*Config, error) {
	text := string(source)
	for _, name := range examples {
		var err error
		if text, err = enableExample(text, name); err != nil {
			return nil, err
		}
	}
	c := &Config{}
	if err := yaml.Unmarshal([]byte(text), &c.root); err != nil {
		return nil, err
	}
	if _, ok := c.root.(map[string]any); !ok {
		return nil, errors.New("the configuration is not a mapping")
	}
	return c, nil
}

// enableExample takes the comment signs away from every block of one example,
// which stands between the lines `# >>> NAME` and `# <<< NAME`.
func enableExample(text, name string) (string, error) {
	begin, end := "# >>> "+name, "# <<< "+name
	var out []string
	inside, blocks := false, 0
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case trimmed == begin && !inside:
			inside = true
			blocks++
		case trimmed == end && inside:
			inside = false
		case inside:
			plain, ok := strings.CutPrefix(trimmed, "# ")
			if !ok {
				return "", fmt.Errorf("line %d, in the example %q, has no comment sign", i+1, name)
			}
			line = line[:len(line)-len(trimmed)] + plain
		}
		out = append(out, line)
	}
	if inside {
		return "", fmt.Errorf("the example %q has no end", name)
	}
	if blocks == 0 {
		return "", fmt.Errorf("no example is called %q", name)
	}
	return strings.Join(out, "\n"), nil
}

// Get returns what stands at a place.
func (c *Config) Get(place ...any) (any, error) {
	node := c.root
	for i, step := range place {
		next, err := child(node, step)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", show(place[:i+1]), err)
		}
		node = next
	}
	return node, nil
}

// child takes one step down.
func child(node, step any) (any, error) {
	switch n := node.(type) {
	case map[string]any:
		key, ok := step.(string)
		if v, found := n[key]; ok && found {
			return v, nil
		}
	case []any:
		if i := index(n, step); i >= 0 {
			return n[i], nil
		}
	}
	return nil, errors.New("the configuration has no such place")
}

// index finds an element of a list by index or by name; -1 without one.
func index(list []any, step any) int {
	switch s := step.(type) {
	case int:
		if s >= 0 && s < len(list) {
			return s
		}
	case string:
		return slices.IndexFunc(list, func(e any) bool {
			m, _ := e.(map[string]any)
			return m["name"] == s
		})
	}
	return -1
}

// Set replaces what stands at a place, which must be there.
func (c *Config) Set(value any, place ...any) error {
	if _, err := c.Get(place...); err != nil {
		return err
	}
	return c.replace(place, func(any, bool) (any, error) { return value, nil })
}

// Add puts a key into a mapping that does not have it yet.
func (c *Config) Add(value any, place ...any) error {
	return c.replace(place, func(_ any, found bool) (any, error) {
		if found {
			return nil, errors.New("the configuration has this already")
		}
		return value, nil
	})
}

// replace changes one key of a mapping or one element of a list.
func (c *Config) replace(place []any, change func(old any, found bool) (any, error)) error {
	if len(place) == 0 {
		return errors.New("the root cannot be replaced")
	}
	last := place[len(place)-1]
	parent, err := c.Get(place[:len(place)-1]...)
	if err != nil {
		return err
	}
	old, lookErr := child(parent, last)
	value, err := change(old, lookErr == nil)
	if err != nil {
		return fmt.Errorf("%s: %w", show(place), err)
	}
	switch p := parent.(type) {
	case map[string]any:
		if key, ok := last.(string); ok {
			p[key] = value
			return nil
		}
	case []any:
		if i := index(p, last); i >= 0 {
			p[i] = value
			return nil
		}
	}
	return fmt.Errorf("%s: the configuration has no such place", show(place))
}

// Remove takes a key out of a mapping, which must have it.
func (c *Config) Remove(place ...any) error {
	if _, err := c.Get(place...); err != nil {
		return err
	}
	parent, err := c.Get(place[:len(place)-1]...)
	if err != nil {
		return err
	}
	m, ok := parent.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: not the key of a mapping", show(place))
	}
	delete(m, place[len(place)-1].(string))
	return nil
}

// InsertBefore puts an element into a list, before the element at a place.
func (c *Config) InsertBefore(value any, place ...any) error {
	if _, err := c.Get(place...); err != nil {
		return err
	}
	parent := place[:len(place)-1]
	node, err := c.Get(parent...)
	if err != nil {
		return err
	}
	list, ok := node.([]any)
	if !ok {
		return fmt.Errorf("%s: not the element of a list", show(place))
	}
	return c.Set(slices.Insert(slices.Clone(list), index(list, place[len(place)-1]), value), parent...)
}

// JSON returns the configuration in a form that Envoy reads.
func (c *Config) JSON() ([]byte, error) { return json.MarshalIndent(c.root, "", " ") }

func show(place []any) string {
	var b strings.Builder
	for i, step := range place {
		switch s := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			fmt.Fprint(&b, s)
		}
	}
	return b.String()
}
