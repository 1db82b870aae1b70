package translate

import (
	"bytes"
	"strconv"
	"strings"
)

// ImageURL is an http(s) URL in the one form that is sent: host in lower case
// without a dot at its end, path and query fit for a request line, no dot
// segments, no fragment (decision 26).
type ImageURL struct {
	HTTPS bool
	// Authority is host[:port]; the port only where the URL names one.
	Authority string
	// Path is path and query.
	Path string
}

// Why a URL is not fetched. A prober learns nothing more about a private network
// than that an address is not public.
const (
	urlBad       = "not a valid URL"
	urlTooLong   = "the URL is too long"
	urlNotPublic = "not a public address"
	urlDowngrade = "a redirect from https to http"
)

// String is the URL in its clean form.
func (u ImageURL) String() string {
	if u.HTTPS {
		return "https://" + u.Authority + u.Path
	}
	return "http://" + u.Authority + u.Path
}

// ParseImageURL reads an http(s) URL. fault is "" or says why it is not fetched:
// it is broken, or its host is in itself no public one, in whatever spelling.
// What a name resolves to is for the egress to check; this is the second wall.
func ParseImageURL(url string, allowPrivate bool) (u ImageURL, fault string) {
	if len(url) > urlBytesMax {
		return u, urlTooLong
	}
	rest := url
	switch {
	case hasPrefixFold([]byte(url), "https://"):
		u.HTTPS, rest = true, url[len("https://"):]
	case hasPrefixFold([]byte(url), "http://"):
		rest = url[len("http://"):]
	default:
		return u, urlBad
	}
	for i := range len(rest) {
		if rest[i] < ' ' || rest[i] == 0x7F {
			return u, urlBad
		}
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if u.Authority, fault = cleanAuthority(rest[:end], allowPrivate); fault != "" {
		return u, fault
	}
	u.Path = cleanPath(rest[end:])
	return u, ""
}

// Redirect is where a Location header of the URL's answer leads, checked like
// the first URL; https never leads to http (decision 27).
func (u ImageURL) Redirect(location string, allowPrivate bool) (next ImageURL, fault string) {
	location = strings.Trim(location, " \t")
	scheme := "http:"
	if u.HTTPS {
		scheme = "https:"
	}
	switch {
	case strings.HasPrefix(location, "//"):
		location = scheme + location
	case hasScheme(location):
	default:
		location = scheme + "//" + u.Authority + resolvePath(u.Path, location)
	}
	next, fault = ParseImageURL(location, allowPrivate)
	if fault == "" && u.HTTPS && !next.HTTPS {
		fault = urlDowngrade
	}
	return next, fault
}

// hasScheme tells whether a reference begins with a scheme (RFC 3986, 3.1).
func hasScheme(ref string) bool {
	for i := range len(ref) {
		c := ref[i]
		switch {
		case c|0x20-'a' <= 25:
		case i > 0 && (c-'0' <= 9 || c == '+' || c == '-' || c == '.'):
		default:
			return c == ':' && i > 0
		}
	}
	return false
}

// resolvePath merges a relative reference with a base's path (RFC 3986, 5.2.3).
// What comes of it may have dot segments, as a first URL may.
func resolvePath(base, ref string) string {
	path, _, _ := strings.Cut(base, "?")
	switch {
	case ref == "" || ref[0] == '#':
		return base
	case ref[0] == '/':
		return ref
	case ref[0] == '?':
		return path + ref
	}
	return path[:strings.LastIndexByte(path, '/')+1] + ref
}

// removeDots takes the dot segments out of a path that begins with a slash (RFC
// 3986, 5.2.4). What they have taken away is not looked at again, so the work is
// that of reading the path once.
func removeDots(path string) string {
	if !strings.Contains(path, "/.") {
		return path
	}
	clean := make([]byte, 0, len(path))
	for path != "" {
		segment := path
		if i := strings.IndexByte(path[1:], '/'); i >= 0 {
			segment = path[:1+i]
		}
		path = path[len(segment):]
		if segment != "/." && segment != "/.." {
			clean = append(clean, segment...)
			continue
		}
		if segment == "/.." {
			clean = clean[:max(bytes.LastIndexByte(clean, '/'), 0)]
		}
		if path == "" {
			clean = append(clean, '/')
		}
	}
	return string(clean)
}

// cleanPath drops the fragment and the dot segments, and encodes what a request
// line cannot carry.
func cleanPath(rest string) string {
	rest, _, _ = strings.Cut(rest, "#")
	if rest == "" || rest[0] == '?' {
		rest = "/" + rest
	}
	path, _, _ := strings.Cut(rest, "?")
	rest = removeDots(path) + rest[len(path):]
	const digits = "0123456789ABCDEF"
	clean := make([]byte, 0, len(rest))
	for i := range len(rest) {
		c := rest[i]
		if c <= ' ' || c >= 0x7F || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			clean = append(clean, '%', digits[c>>4], digits[c&15])
			continue
		}
		clean = append(clean, c)
	}
	return string(clean)
}

// cleanAuthority checks host and port; an empty port is none. User info, zones,
// percent-encoding, backslashes and anything beyond ASCII make the URL bad:
// parsers disagree about them.
func cleanAuthority(authority string, allowPrivate bool) (clean, fault string) {
	host, port := authority, ""
	if colon := strings.LastIndexByte(authority, ':'); colon > strings.LastIndexByte(authority, ']') {
		host, port = authority[:colon], authority[colon+1:]
		if port != "" {
			number, err := strconv.ParseUint(port, 10, 16)
			if err != nil || number == 0 {
				return "", urlBad
			}
			port = ":" + strconv.FormatUint(number, 10)
		}
	}
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		ip, ok := parseIPv6(host[1 : len(host)-1])
		switch {
		case !ok:
			return "", urlBad
		case !allowPrivate && !ip.public():
			return "", urlNotPublic
		}
		return strings.ToLower(host) + port, ""
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if fault = checkName(host, allowPrivate); fault != "" {
		return "", fault
	}
	return host + port, ""
}

// checkName checks a name or an IPv4 address. A last label that a URL parser may
// read as a number makes the host an address, and only its plain form counts:
// 0177.0.0.1, 0x7f.1, 127.1 and 2130706433 are one address to some and another,
// or a name, to others.
func checkName(host string, allowPrivate bool) (fault string) {
	if host == "" || len(host) > hostBytesMax {
		return urlBad
	}
	last := ""
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > labelBytesMax {
			return urlBad
		}
		for i := range len(label) {
			if !idByte(label[i]) {
				return urlBad
			}
		}
		last = label
	}
	switch {
	case numeric(last):
		ip, ok := parseIPv4(host)
		if !ok || !allowPrivate && !ip.public() {
			return urlNotPublic
		}
	case last == "localhost" && !allowPrivate:
		return urlNotPublic
	}
	return ""
}

// numeric tells whether a label is digits only, or hexadecimal behind 0x.
func numeric(label string) bool {
	hex := strings.HasPrefix(label, "0x")
	if hex {
		label = label[2:]
	}
	for i := range len(label) {
		c := label[i]
		if c-'0' > 9 && !(hex && c-'a' <= 5) {
			return false
		}
	}
	return true
}
