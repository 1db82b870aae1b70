package main

import (
	"strconv"
	"strings"

	"ezat.io/chat-completions/translate"
)

// Why a download failed, as the client reads it behind "could not download the
// image". Package translate has the reasons that lie in a URL. The egress names
// certificates, addresses and resolvers in its own words, which are never shown.
//
// What a prober may learn of a private network is that an address is not public:
// no connection is ever made to such an address, so no other reason speaks of
// it. A name that only a private network can have is called so too where the
// resolver does not know it; otherwise the difference would tell which of these
// names exist.
const (
	reasonTimeout      = "timed out"
	reasonTooLarge     = "larger than 10 MB"
	reasonNotImage     = "not a JPEG, PNG, GIF or WebP image"
	reasonNotPublic    = "not a public address"
	reasonBadURL       = "not a valid URL"
	reasonRedirects    = "more than 3 redirects"
	reasonNoName       = "name not found"
	reasonTLS          = "TLS failure"
	reasonNoConnection = "no connection"
	reasonBroken       = "the answer broke off"
	reasonBusy         = "too many downloads at the moment"
)

// togetherLarger is the reason for images that are too large together.
func togetherLarger(bytes int) string {
	return "all images together are larger than " + strconv.Itoa(bytes>>20) + " MB"
}

// readAnswer judges the answer to one hop before its body is read: it fails for
// a reason, leads to another location, or has a file.
func readAnswer(r *CallResult, url *translate.ImageURL) (location, reason string) {
	switch {
	case r.Status == 0:
		return "", reasonNoConnection
	case r.Status == 200:
		return "", fileReason(r)
	}
	if details := lookup(r.Headers, "x-egress-details"); details != "" {
		return "", egressReason(details, r.Status, url.Authority)
	}
	if lookup(r.Headers, "x-envoy-upstream-service-time") == "" {
		// The host itself answered, in the place of one that it could not reach.
		switch {
		case r.Status == 504:
			return "", reasonTimeout
		case lookup(r.Headers, "x-envoy-overloaded") != "":
			return "", reasonBusy
		case r.Status == 503:
			return "", reasonNoConnection
		}
	}
	switch r.Status {
	case 301, 302, 303, 307, 308:
		location = strings.TrimSpace(lookup(r.Headers, "location"))
	}
	if location == "" {
		reason = "HTTP " + strconv.Itoa(r.Status)
	}
	return location, reason
}

// fileReason is why a file is no image that is taken, as far as its headers tell.
func fileReason(r *CallResult) string {
	switch {
	case r.Size > translate.ImageBytesMax:
		return reasonTooLarge
	case r.Size == 0 || !isIdentity(lookup(r.Headers, "content-encoding")):
		return reasonNotImage
	}
	return ""
}

// egressReason reads the response code details of Envoy's egress listener, which
// it adds to its own error replies only.
func egressReason(details string, status int, authority string) string {
	has := func(part string) bool { return strings.Contains(details, part) }
	switch {
	case has("address_denied"):
		return reasonNotPublic
	case has("dns_cache_overflow"), details == "overload", has("{overflow}"):
		return reasonBusy
	case has("dns_resolution_failure"):
		return lookupReason(details, authority)
	case has("TLS_error"):
		return reasonTLS
	case has("response_payload_too_large"):
		return reasonTooLarge
	case has("upstream_reset_after_response_started"):
		return reasonBroken
	case has("upstream_reset_before_response_started"):
		return reasonNoConnection
	case status == 504:
		return reasonTimeout
	case status < 500:
		// The egress itself would not take host or path.
		return reasonBadURL
	}
	return reasonNoConnection
}

// lookupReason is for a name that the resolver has no address for.
func lookupReason(details, authority string) string {
	switch {
	case isPrivateName(authority):
		return reasonNotPublic
	case strings.Contains(details, "Misformatted"):
		return reasonBadURL
	case strings.Contains(details, "imeout"):
		return reasonTimeout
	}
	return reasonNoName
}

// isPrivateName tells whether a host cannot be one of the public DNS: a single
// label, or a name below one of the top levels that private networks use (RFC
// 6762, appendix G; RFC 8375; .svc of Kubernetes; .localdomain of hosts files).
func isPrivateName(authority string) bool {
	host, _, _ := strings.Cut(authority, ":")
	for _, zone := range privateZones {
		if strings.HasSuffix(host, zone) {
			return true
		}
	}
	return strings.IndexByte(host, '.') < 0
}

var privateZones = [...]string{
	".local", ".localdomain", ".internal", ".intranet", ".private", ".corp", ".home", ".lan", ".svc", ".home.arpa",
}
