package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// plugin is the plugin's configuration and what the gateway needs to know of it.
type plugin struct {
	text   string
	prefix string // where the module is reachable
}

// routePrefix is the module's own default.
const routePrefix = "/openai/v1"

// pluginConfig reads the configuration from a file, or makes one for the
// upstream: its authority, and no image downloads, for which the gateway has no
// clusters. The module itself checks the file's content.
func pluginConfig(file, authority string) (plugin, error) {
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return plugin{}, fmt.Errorf("-config: %w", err)
		}
		return plugin{string(text), prefixOf(text)}, nil
	}
	text, err := json.Marshal(map[string]any{
		"upstream": map[string]any{"authority": authority},
		"images":   map[string]any{"http_cluster": "", "https_cluster": ""},
	})
	if err != nil {
		return plugin{}, err
	}
	return plugin{string(text), routePrefix}, nil
}

// prefixOf finds route_prefix. What is wrong with the configuration the module
// says better.
func prefixOf(text []byte) string {
	var c struct {
		RoutePrefix *string `json:"route_prefix"`
	}
	if err := json.Unmarshal(text, &c); err != nil || c.RoutePrefix == nil {
		return routePrefix
	}
	return strings.TrimSuffix(*c.RoutePrefix, "/")
}
