package harness

import (
	"encoding/binary"
	"net"
	"slices"
	"strconv"
	"strings"

	"ezat.io/chat-completions/harness/internal/abi"
)

// GetProperty is proxy_get_property. The parts of a path are parted by zero
// bytes. Numbers are eight bytes, little endian, truth values one, maps as the
// ABI lays maps out; testdata/properties.txtar shows them all.
func (v *vm) GetProperty(path string) (string, abi.Status) {
	parts := strings.Split(strings.TrimSuffix(path, "\x00"), "\x00")
	if path == "" {
		return "", abi.SerializationFailure
	}
	value, ok := v.property(parts)
	if !ok {
		return "", abi.NotFound
	}
	return value.text, value.status
}

// property is a value as it crosses the ABI.
type property struct {
	text   string
	status abi.Status
}

func textProperty(s string) (property, bool) { return property{text: s}, true }

func numberProperty(n int64) (property, bool) {
	return property{text: string(binary.LittleEndian.AppendUint64(nil, uint64(n)))}, true
}

func boolProperty(b bool) (property, bool) {
	return property{text: string([]byte{byte(word(b))})}, true
}

func noProperty() (property, bool) { return property{}, false }

// optional is a text that may be missing.
func optional(s string, ok bool) (property, bool) { return property{text: s}, ok }

// structs are the properties that only have parts; as a whole they cannot be
// written out.
var structs = []string{"request", "response", "connection", "upstream", "source", "destination", "xds", "filter_state"}

// property finds a value by its path.
func (v *vm) property(parts []string) (property, bool) {
	switch parts[0] {
	case "plugin_name":
		return optional(v.host.config.PluginName, len(parts) == 1)
	case "plugin_root_id":
		return optional(v.host.config.RootID, len(parts) == 1)
	case "plugin_vm_id":
		return optional(v.host.config.VMID, len(parts) == 1)
	}
	s := v.stream()
	if s == nil {
		return noProperty()
	}
	if slices.Contains(structs, parts[0]) && len(parts) == 1 {
		return property{status: abi.SerializationFailure}, true
	}
	switch parts[0] {
	case "request":
		return s.requestProperty(parts[1:])
	case "response":
		return s.responseProperty(parts[1:])
	case "upstream":
		return s.upstreamProperty(parts[1:])
	case "xds":
		return s.xdsProperty(parts[1:])
	case "source":
		return addressProperty(s.source, parts[1:])
	case "destination":
		return addressProperty(s.destination, parts[1:])
	case "connection":
		return s.connectionProperty(parts[1:])
	case "connection_id":
		return numberProperty(int64(s.connection))
	case "metadata":
		return optional("", len(parts) == 1) // an empty message
	case "filter_state":
		value, ok := s.state[parts[1]]
		return optional(value, ok && len(parts) == 2)
	}
	value, ok := s.state["wasm."+parts[0]]
	return optional(value, ok && len(parts) == 1)
}

// requestProperty reads the request. What comes from the headers is there as
// long as the guest can reach them.
func (s *Stream) requestProperty(parts []string) (property, bool) {
	h := s.request.shownHeaders
	if s.logging {
		h = s.request.headers
	}
	switch parts[0] {
	case "headers":
		return headersProperty(h, parts[1:])
	case "headers_bytes":
		return numberProperty(int64(headerBytes(h)))
	case "protocol":
		return textProperty("HTTP/1.1")
	case "time":
		return numberProperty(s.start.UnixNano())
	case "total_size":
		return numberProperty(int64(s.received + headerBytes(h)))
	case "duration":
		return noProperty()
	case "size":
		if h != nil {
			if n, err := strconv.ParseInt(h.Get("content-length"), 10, 64); err == nil {
				return numberProperty(n)
			}
		}
		return numberProperty(int64(s.received))
	}
	if h == nil {
		return noProperty()
	}
	path, query, hasPath := cutPath(h)
	names := map[string]string{
		"path": ":path", "host": ":authority", "scheme": ":scheme", "method": ":method",
		"referer": "referer", "id": "x-request-id", "useragent": "user-agent",
	}
	switch parts[0] {
	case "url_path":
		return optional(path, hasPath)
	case "query":
		return optional(query, hasPath)
	}
	if name, ok := names[parts[0]]; ok && len(parts) == 1 {
		return optional(h.Lookup(name))
	}
	return noProperty()
}

func cutPath(h *Headers) (path, query string, ok bool) {
	whole, ok := h.Lookup(":path")
	path, query, _ = strings.Cut(whole, "?")
	query, _, _ = strings.Cut(query, "#")
	return path, query, ok
}

func headerBytes(h *Headers) int {
	if h == nil {
		return 0
	}
	return h.Bytes()
}

// headersProperty is one header, duplicates joined by commas, or all.
func headersProperty(h *Headers, parts []string) (property, bool) {
	if len(parts) == 1 {
		if h == nil {
			return noProperty()
		}
		values := h.Values(parts[0])
		return optional(strings.Join(values, ","), len(values) > 0)
	}
	var pairs []abi.Pair
	if h != nil {
		for _, f := range *h {
			if !slices.ContainsFunc(pairs, func(p abi.Pair) bool { return p.Name == f.Name }) {
				pairs = append(pairs, abi.Pair{Name: f.Name, Value: strings.Join(h.Values(f.Name), ",")})
			}
		}
	}
	return property{text: string(abi.AppendPairs(nil, pairs))}, len(parts) == 0
}

func (s *Stream) responseProperty(parts []string) (property, bool) {
	h, t := s.response.shownHeaders, s.response.shownTrailers
	if s.logging {
		h, t = s.response.headers, s.response.trailers
	}
	switch parts[0] {
	case "headers":
		return headersProperty(h, parts[1:])
	case "trailers":
		return headersProperty(t, parts[1:])
	case "code":
		if s.code == 0 {
			return noProperty()
		}
		return numberProperty(int64(s.code))
	case "code_details":
		if s.details == nil {
			return noProperty()
		}
		return textProperty(*s.details)
	case "flags":
		return numberProperty(0)
	case "size":
		return numberProperty(int64(s.sent))
	case "headers_bytes":
		return numberProperty(int64(headerBytes(h)))
	case "total_size":
		return numberProperty(int64(s.sent + headerBytes(h) + headerBytes(t)))
	}
	return noProperty()
}

// upstreamProperty is there once a host of the cluster was chosen.
func (s *Stream) upstreamProperty(parts []string) (property, bool) {
	c := s.router.cluster
	switch parts[0] {
	case "transport_failure_reason":
		if c != nil {
			return textProperty(s.router.failure)
		}
		return noProperty()
	case "request_attempt_count":
		return numberProperty(int64(word(c != nil)))
	}
	if c == nil {
		return noProperty()
	}
	return addressProperty(c.address(), parts)
}

// xdsProperty is about the route as it was picked last.
func (s *Stream) xdsProperty(parts []string) (property, bool) {
	if parts[0] == "listener_direction" {
		return numberProperty(0)
	}
	r := s.route
	if r == nil {
		return noProperty()
	}
	switch parts[0] {
	case "cluster_name":
		_, known := s.w.host.config.Clusters[r.Cluster]
		return optional(r.Cluster, known && r.DirectStatus == 0)
	case "route_name":
		return textProperty(r.Name)
	case "virtual_host_name":
		return textProperty(s.w.host.config.VirtualHost)
	}
	return noProperty()
}

func addressProperty(address string, parts []string) (property, bool) {
	switch parts[0] {
	case "address":
		return textProperty(address)
	case "port":
		if _, port, err := net.SplitHostPort(address); err == nil {
			if n, err := strconv.ParseInt(port, 10, 32); err == nil {
				return numberProperty(n)
			}
		}
	}
	return noProperty()
}

func (s *Stream) connectionProperty(parts []string) (property, bool) {
	switch parts[0] {
	case "id":
		return numberProperty(int64(s.connection))
	case "mtls":
		return boolProperty(false)
	case "requested_server_name":
		return textProperty("")
	}
	return noProperty()
}

// SetProperty is proxy_set_property: it writes filter state of the stream.
func (v *vm) SetProperty(path string, value []byte) abi.Status {
	s := v.stream()
	if s == nil {
		return abi.NotFound
	}
	name := "wasm." + path
	old, known := s.state[name]
	size := s.stateBytes + len(value) - len(old)
	if !known {
		size += len(name)
	}
	if size > filterStateBytesMax || !known && len(s.state) >= filterStateValuesMax {
		return abi.InternalFailure
	}
	s.stateBytes = size
	if s.state == nil {
		s.state = map[string]string{}
	}
	s.state[name] = string(value)
	return abi.OK
}
