package envoy

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Set is the edit that replaces what stands at a place.
func Set(value any, place ...any) Edit {
	return func(c *Config) error { return c.Set(value, place...) }
}

// MaxConnections replaces the limit of client connections.
func MaxConnections(n int) Edit {
	return Set(n, at(Monitors, "envoy.resource_monitors.global_downstream_max_connections",
		"typed_config", "max_active_downstream_connections")...)
}

// MaxHeap replaces the limit of the heap, in bytes.
func MaxHeap(bytes int64) Edit {
	return Set(bytes, at(Monitors, "envoy.resource_monitors.fixed_heap", "typed_config", "max_heap_size_bytes")...)
}

// BufferLimit replaces the bytes that may be held of one request or answer,
// for HTTP/1.1 and for HTTP/2.
func BufferLimit(bytes int) Edit {
	return func(c *Config) error {
		if err := c.Set(bytes, at(Listener, "per_connection_buffer_limit_bytes")...); err != nil {
			return err
		}
		return c.Set(bytes, at(HCM, "http2_protocol_options", "initial_stream_window_size")...)
	}
}

// RequestTimeouts replaces how long headers, and whole requests, may take to
// come in.
func RequestTimeouts(headers, whole time.Duration) Edit {
	return func(c *Config) error {
		if err := c.Set(seconds(headers), at(HCM, "request_headers_timeout")...); err != nil {
			return err
		}
		return c.Set(seconds(whole), at(HCM, "request_timeout")...)
	}
}

// IdleTimeouts replaces how long a stream, and a connection without a
// stream, may stand still.
func IdleTimeouts(stream, connection time.Duration) Edit {
	return func(c *Config) error {
		if err := c.Set(seconds(stream), at(HCM, "stream_idle_timeout")...); err != nil {
			return err
		}
		return c.Set(seconds(connection), at(HCM, "common_http_protocol_options", "idle_timeout")...)
	}
}

// WholeAnswer replaces the 590 s that the filter gives a whole answer. The
// filter says them in a header, so a script behind it says something else
// instead; what the filter says of streams stays.
func WholeAnswer(limit time.Duration) Edit {
	const script = `function envoy_on_request(handle)
  local headers = handle:headers()
  if headers:get("x-envoy-upstream-rq-timeout-ms") == "590000" then
    headers:replace("x-envoy-upstream-rq-timeout-ms", "%d")
  end
end`
	lua := map[string]any{
		"name": "envoy.filters.http.lua",
		"typed_config": map[string]any{
			"@type":               "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
			"default_source_code": map[string]any{"inline_string": fmt.Sprintf(script, limit.Milliseconds())},
		},
	}
	return func(c *Config) error {
		return c.InsertBefore(lua, at(HCM, "http_filters", "envoy.filters.http.router")...)
	}
}

// plugin replaces the filter's configuration.
func plugin(configuration any) Edit {
	return func(c *Config) error {
		text, ok := configuration.(string)
		if !ok {
			encoded, err := json.Marshal(configuration)
			if err != nil {
				return fmt.Errorf("plugin configuration: %w", err)
			}
			text = string(encoded)
		}
		return c.Set(text, at(Filter, "configuration", "value")...)
	}
}

// listen replaces the address for clients and that of the administration
// interface; both may have port 0.
func listen(client, admin string) Edit {
	return func(c *Config) error {
		if err := c.setAddress(client, at(Listener, "address")...); err != nil {
			return err
		}
		return c.setAddress(admin, "admin", "address")
	}
}

// setAddress replaces the host and the port of a socket address.
func (c *Config) setAddress(hostport string, place ...any) error {
	host, text, err := net.SplitHostPort(hostport)
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fmt.Errorf("%s: %w", hostport, err)
	}
	if err := c.Set(host, at(place, "socket_address", "address")...); err != nil {
		return err
	}
	return c.Set(port, at(place, "socket_address", "port_value")...)
}

// upstream is a parsed Options.Upstreams element.
type upstream struct {
	tls  bool
	host string // without port
	port string
}

func parseUpstream(text string) (upstream, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return upstream{}, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return upstream{}, fmt.Errorf("upstream %q: use http://HOST:PORT or https://HOST[:PORT]", text)
	}
	up := upstream{tls: u.Scheme == "https", host: u.Hostname(), port: u.Port()}
	if up.port == "" {
		up.port = map[bool]string{false: "80", true: "443"}[up.tls]
	}
	return up, nil
}

// upstreams replaces where requests go.
func upstreams(list []string, ca string) Edit {
	return func(c *Config) error {
		var parsed []upstream
		for _, text := range list {
			up, err := parseUpstream(text)
			if err != nil {
				return err
			}
			parsed = append(parsed, up)
		}
		if len(parsed) == 0 {
			return fmt.Errorf("no upstream is given")
		}
		if err := c.setEndpoints(parsed); err != nil {
			return err
		}
		return c.setTransport(parsed, ca)
	}
}

// setEndpoints makes one endpoint for each upstream, each a copy of the file's.
func (c *Config) setEndpoints(list []upstream) error {
	place := at(Cluster, "load_assignment", "endpoints", 0, "lb_endpoints")
	var all []any
	for _, up := range list {
		if err := c.setAddress(net.JoinHostPort(up.host, up.port), at(place, 0, "endpoint", "address")...); err != nil {
			return err
		}
		endpoint, err := c.Get(at(place, 0)...)
		if err != nil {
			return err
		}
		copied, err := deepCopy(endpoint)
		if err != nil {
			return err
		}
		all = append(all, copied)
	}
	return c.Set(all, place...)
}

// setTransport takes TLS away for plain upstreams. For others it stays as the
// file has it, but for a host name, which the file's two places then say, and
// for a certificate authority of a test's own.
func (c *Config) setTransport(list []upstream, ca string) error {
	socket := at(Cluster, "transport_socket")
	for _, up := range list {
		if up.tls != list[0].tls {
			return fmt.Errorf("upstreams with and without TLS cannot be mixed")
		}
	}
	if !list[0].tls {
		return c.Remove(socket...)
	}
	tls := at(socket, "typed_config")
	if ca != "" {
		if err := c.Set(ca, at(tls, "common_tls_context", "validation_context", "trusted_ca", "filename")...); err != nil {
			return err
		}
	}
	if host := list[0].host; net.ParseIP(host) == nil {
		if err := c.Set(host, at(tls, "sni")...); err != nil {
			return err
		}
		return c.setAuthority(host)
	}
	return nil
}

// setAuthority replaces the host name in the filter's configuration.
func (c *Config) setAuthority(host string) error {
	place := at(Filter, "configuration", "value")
	value, err := c.Get(place...)
	if err != nil {
		return err
	}
	text, _ := value.(string)
	var configuration map[string]any
	if err := json.Unmarshal([]byte(text), &configuration); err != nil {
		return fmt.Errorf("%s: %w", show(place), err)
	}
	up, _ := configuration["upstream"].(map[string]any)
	if _, ok := up["authority"]; !ok {
		return fmt.Errorf("%s: has no upstream.authority", show(place))
	}
	up["authority"] = host
	return plugin(configuration)(c)
}

func deepCopy(v any) (any, error) {
	encoded, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	return out, json.Unmarshal(encoded, &out)
}

// seconds writes a duration as protobuf's JSON does.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}
