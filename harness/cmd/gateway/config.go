package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// plugin is the plugin's configuration and what the gateway needs to know of it.
type plugin struct {
	text   string
	prefix string   // where the module is reachable
	images []string // the clusters of its image downloads
}

// The module's own defaults (operator.md, "Configuration").
const (
	routePrefix  = "/openai/v1"
	httpCluster  = "image_http"
	httpsCluster = "image_https"
)

// pluginConfig reads the configuration from a file, or makes one for the
// upstream with this authority. The module itself checks the file's content.
func pluginConfig(o options, authority string) (plugin, error) {
	if o.config != "" {
		if o.noImages {
			return plugin{}, errors.New("-no-images and -config: in the file, empty names of images.http_cluster and images.https_cluster turn downloads off")
		}
		text, err := os.ReadFile(o.config)
		if err != nil {
			return plugin{}, fmt.Errorf("-config: %w", err)
		}
		return plugin{string(text), prefixOf(text), imageClustersOf(text)}, nil
	}
	images := map[string]any{}
	if o.noImages {
		images = map[string]any{"http_cluster": "", "https_cluster": ""}
	} else if o.imageNetworks != "" {
		// The module's own check is of literal addresses. Which of them may be
		// reached is the egress's to say.
		images["allow_private"] = true
	}
	text, err := json.Marshal(map[string]any{
		"upstream": map[string]any{"authority": authority},
		"images":   images,
	})
	if err != nil {
		return plugin{}, err
	}
	return plugin{string(text), routePrefix, imageClustersOf(text)}, nil
}

// imageClustersOf finds the clusters for images. One with an empty name is
// turned off.
func imageClustersOf(text []byte) []string {
	c := struct {
		Images struct {
			HTTP  *string `json:"http_cluster"`
			HTTPS *string `json:"https_cluster"`
		} `json:"images"`
	}{}
	if err := json.Unmarshal(text, &c); err != nil {
		return nil // the module says what is wrong, and does not start
	}
	http, https := httpCluster, httpsCluster
	names := []string{*cmp.Or(c.Images.HTTP, &http), *cmp.Or(c.Images.HTTPS, &https)}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// networks reads the prefixes of -image-networks.
func networks(list string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for text := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("-image-networks: %q is not a network such as 10.0.0.0/8", text)
		}
		out = append(out, p)
	}
	return out, nil
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
