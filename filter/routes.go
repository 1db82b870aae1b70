package main

import (
	"strings"
	"unicode/utf8"
)

// endpoint is what a path means to the filter.
type endpoint int

const (
	// foreign paths are not under the route prefix: the filter is invisible.
	foreign endpoint = iota
	chatCompletions
	modelList
	oneModel
	// unknownPath is under the prefix, but nothing of ours: 404.
	unknownPath
)

// route is a path read by operator.md, "Paths".
type route struct {
	endpoint endpoint
	// method is the only one that the endpoint has.
	method string
	// model is the decoded id of oneModel.
	model string
}

// findRoute reads a request path. A query or fragment is ignored, and the
// prefix matches at segment borders only.
func findRoute(prefix, path string) route {
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	rest, ok := strings.CutPrefix(path, prefix)
	if !ok || rest != "" && rest[0] != '/' {
		return route{}
	}
	switch rest {
	case "/chat/completions":
		return route{endpoint: chatCompletions, method: "POST"}
	case "/models":
		return route{endpoint: modelList, method: "GET"}
	}
	if id, ok := strings.CutPrefix(rest, "/models/"); ok && id != "" {
		return route{endpoint: oneModel, method: "GET", model: decodePath(id)}
	}
	return route{endpoint: unknownPath}
}

// decodePath undoes percent-encoding. A percent sign without two digits stands
// for itself: such a name exists as little as any other unknown one.
func decodePath(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, lo := hexDigit(s[i+1]), hexDigit(s[i+2])
			if hi >= 0 && lo >= 0 {
				out = append(out, byte(hi<<4|lo))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// encodePath percent-encodes everything but RFC 3986's unreserved characters,
// so that the result is one segment of a path, or one value of a query.
func encodePath(s string) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(s)+8)
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isAlnum(c) || c == '-' || c == '.' || c == '_' || c == '~' {
			out = append(out, c)
		} else {
			out = append(out, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(out)
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isModelName tells whether a name may be asked for upstream. Dot segments
// must not be: a server that decodes before it resolves paths would leave the
// models path.
func isModelName(s string) bool {
	if s == "" || len(s) > modelNameBytesMax || !utf8.ValidString(s) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	for segment := range strings.SplitSeq(s, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.Contains(s, `\`)
}
