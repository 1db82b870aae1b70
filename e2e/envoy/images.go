package envoy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// Shipped files, from the top of the repository.
const (
	// File is the configuration that the product is made for.
	File = "envoy.yaml"
	// FileWithoutImages is the one for Envoy before 1.39: see WithoutImages.
	FileWithoutImages = "build/envoy-no-images.yaml"
)

// Places of the image egress that many edits begin with.
var (
	// Egress is the HTTP connection manager of the listener for downloads.
	Egress = []any{"static_resources", "listeners", "image_egress",
		"filter_chains", 0, "filters", "envoy.filters.network.http_connection_manager", "typed_config"}
	// ImageTLS is the TLS context for servers of https images.
	ImageTLS = []any{"static_resources", "clusters", "image_forward_https", "transport_socket", "typed_config"}
)

// imageDNS are the three places of the DNS cache's settings, which have to be
// the same.
var imageDNS = [][]any{
	at(Egress, "http_filters", "envoy.filters.http.dynamic_forward_proxy", "typed_config", "dns_cache_config"),
	{"static_resources", "clusters", "image_forward_http", "cluster_type", "typed_config", "dns_cache_config"},
	{"static_resources", "clusters", "image_forward_https", "cluster_type", "typed_config", "dns_cache_config"},
}

// ImageDNS changes the settings of the image egress's DNS cache. The change is
// made at each place where they stand; place is that place.
func ImageDNS(change func(c *Config, place []any) error) Edit {
	return func(c *Config) error {
		for _, place := range imageDNS {
			if err := change(c, place); err != nil {
				return err
			}
		}
		return nil
	}
}

// EgressListener adds a listener on a free port of loopback that is otherwise that
// of the egress, so that a test can ask the egress without the module: see
// ListenerAddr.
func EgressListener(name string) Edit {
	return func(c *Config) error {
		shipped, err := c.Get(Egress[:3]...)
		if err != nil {
			return err
		}
		copied, err := deepCopy(shipped)
		if err != nil {
			return err
		}
		listener := copied.(map[string]any)
		delete(listener, "internal_listener")
		listener["name"] = name
		listener["address"] = map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": 0}}
		return c.InsertBefore(listener, Egress[:3]...)
	}
}

// WithoutImages makes of envoy.yaml the file for Envoy before 1.39: without what
// stands between `# +++ images` and `# --- images`, with the example
// "no-images" switched on and its marks taken away.
func WithoutImages(source string) (string, error) {
	const begin, end = "# +++ images", "# --- images"
	text, err := enableExample(source, "no-images")
	if err != nil {
		return "", err
	}
	var out []string
	inside, blocks := false, 0
	for i, line := range strings.Split(text, "\n") {
		switch trimmed := strings.TrimLeft(line, " "); {
		case trimmed == begin && !inside:
			inside = true
			blocks++
			// The blank line above goes with the block.
			if n := len(out); n > 0 && out[n-1] == "" {
				out = out[:n-1]
			}
		case trimmed == end && inside:
			inside = false
		case trimmed == begin || trimmed == end:
			return "", fmt.Errorf("line %d: %s does not fit", i+1, trimmed)
		case inside, trimmed == "# >>> no-images", trimmed == "# <<< no-images":
		default:
			out = append(out, line)
		}
	}
	if inside || blocks == 0 {
		return "", errors.New("the marks of the images have no end, or there are none")
	}
	return strings.Join(out, "\n"), nil
}

// authorities are the places of the system's certificate authorities: Debian,
// Ubuntu and Alpine; Red Hat; macOS.
var authorities = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"}

// imageAuthorities replaces the certificate authorities of https images: by a
// test's own, or where the file's do not exist by those of this system. A file
// without images has none.
func imageAuthorities(ca string) Edit {
	return func(c *Config) error {
		place := at(ImageTLS, "common_tls_context", "validation_context", "trusted_ca", "filename")
		shipped, err := c.Get(place...)
		if err != nil {
			if ca == "" {
				return nil
			}
			return err
		}
		if ca != "" {
			return c.Set(ca, place...)
		}
		for _, path := range append([]string{fmt.Sprint(shipped)}, authorities...) {
			_, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			return c.Set(path, place...)
		}
		return fmt.Errorf("no certificate authorities in %s", strings.Join(authorities, ", "))
	}
}

// ImageAccess is one line of the egress's access log: one hop of a download.
type ImageAccess struct {
	Line   string
	Scheme string // "-" when no route fits
	Host   string // with the port, as it was asked for
	Status string
	Fields map[string]string // the key=value parts; "-" is an absent value
}

var imageLine = regexp.MustCompile(`^\S+ "image (\S+) (.*)" (\d+) (flags=.*)$`)

// ParseImageAccess reads one line of the egress's access log.
func ParseImageAccess(line string) (ImageAccess, error) {
	m := imageLine.FindStringSubmatch(line)
	if m == nil {
		return ImageAccess{}, fmt.Errorf("not a line of the egress's access log: %q", line)
	}
	fields, err := parseFields(m[4])
	if err != nil {
		return ImageAccess{}, fmt.Errorf("%w in %q", err, line)
	}
	return ImageAccess{Line: line, Scheme: m[1], Host: m[2], Status: m[3], Fields: fields}, nil
}

// isImageAccess tells the lines of the egress from those of requests.
func isImageAccess(line string) bool {
	_, rest, _ := strings.Cut(line, " ")
	return strings.HasPrefix(rest, `"image `)
}

// ImageLog returns the lines of the egress's access log so far. A line comes
// about 50 ms after the hop has ended.
func (e *Envoy) ImageLog() ([]ImageAccess, error) {
	var all []ImageAccess
	for _, line := range wholeLines(e.read("access.log")) {
		if !isImageAccess(line) {
			continue
		}
		a, err := ParseImageAccess(line)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}
