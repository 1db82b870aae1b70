package main

import (
	"slices"
	"strconv"
	"strings"

	"ezat.io/chat-completions/translate"
)

// credentials says whose key goes upstream, and how (operator.md, `upstream.credentials`).
type credentials int

const (
	// clientKey sends the client's bearer key as x-api-key.
	clientKey credentials = iota
	// bearerKey sends it as authorization: Bearer.
	bearerKey
	// gatewayKey removes it: the gateway adds its own.
	gatewayKey
)

// config is the plugin configuration of operator.md, checked. It never changes.
type config struct {
	routePrefix   string
	authority     string // "" keeps the client's
	cluster       string // "" is the cluster of the request's own route
	messagesPath  string
	modelsPath    string
	version       string // anthropic-version
	credentials   credentials
	modelPrefix   string
	models        []translate.ModelEntry
	refuseUnknown bool
	holdHeaders   bool
	caching       bool
	images        imagesConfig
}

type imagesConfig struct {
	httpCluster, httpsCluster string // "" turns the scheme off
	allowPrivate              bool
	memoryBytes               int
}

func defaultConfig() config {
	return config{
		routePrefix:  "/openai/v1",
		messagesPath: "/v1/messages",
		modelsPath:   "/v1/models",
		version:      "2023-06-01",
		modelPrefix:  "anthropic/",
		holdHeaders:  true,
		caching:      true,
		images: imagesConfig{
			httpCluster:  "image_http",
			httpsCluster: "image_https",
			memoryBytes:  268_435_456,
		},
	}
}

// parseConfig reads the plugin's configuration. Empty text is the empty
// configuration. faults lists everything that is wrong with it, each with its
// path first; with any of them the plugin must not start.
func parseConfig(src []byte) (c config, faults []string) {
	c = defaultConfig()
	if strings.TrimSpace(string(src)) == "" {
		return c, nil
	}
	if len(src) > configBytesMax {
		return c, []string{"configuration: is longer than " + strconv.Itoa(configBytesMax) + " bytes"}
	}
	v, fault := parseJSON(src)
	if fault != "" {
		return c, []string{"configuration: " + fault}
	}
	r := configReader{}
	c.read(&r, v)
	return c, r.faults
}

func (c *config) read(r *configReader, v jsonValue) {
	r.object("", v, func(path, key string, v jsonValue) bool {
		switch key {
		case "route_prefix":
			r.text(path, v, &c.routePrefix, checkPrefix)
		case "upstream":
			r.object(path, v, func(path, key string, v jsonValue) bool { return c.readUpstream(r, path, key, v) })
		case "models":
			c.readModels(r, path, v)
		case "unknown_models":
			r.choice(path, v, func(i int) { c.refuseUnknown = i == 1 }, "forward", "refuse")
		case "hold_headers":
			r.truth(path, v, &c.holdHeaders)
		case "caching":
			r.truth(path, v, &c.caching)
		case "images":
			r.object(path, v, func(path, key string, v jsonValue) bool { return c.readImages(r, path, key, v) })
		default:
			return false
		}
		return true
	})
}

func (c *config) readUpstream(r *configReader, path, key string, v jsonValue) bool {
	switch key {
	case "authority":
		r.text(path, v, &c.authority, checkAuthority)
	case "cluster":
		r.text(path, v, &c.cluster, checkPrintable)
	case "messages_path":
		r.text(path, v, &c.messagesPath, checkPath)
	case "models_path":
		r.text(path, v, &c.modelsPath, checkPath)
	case "anthropic_version":
		r.text(path, v, &c.version, checkVersion)
	case "credentials":
		r.choice(path, v, func(i int) { c.credentials = credentials(i) }, "client", "bearer", "gateway")
	case "model_prefix":
		r.text(path, v, &c.modelPrefix, checkPrintable)
	default:
		return false
	}
	return true
}

func (c *config) readImages(r *configReader, path, key string, v jsonValue) bool {
	switch key {
	case "http_cluster":
		r.text(path, v, &c.images.httpCluster, checkPrintable)
	case "https_cluster":
		r.text(path, v, &c.images.httpsCluster, checkPrintable)
	case "allow_private":
		r.truth(path, v, &c.images.allowPrivate)
	case "memory_bytes":
		// One image of the contract's 10 MB must fit. The most is what a VM, which
		// has 1 GiB for everything, was seen to hold.
		r.number(path, v, &c.images.memoryBytes, translate.ImageBytesMax, 268_435_456)
	default:
		return false
	}
	return true
}

func (c *config) readModels(r *configReader, path string, v jsonValue) {
	r.object(path, v, func(path, name string, v jsonValue) bool {
		if !isModelName(name) {
			r.fault(path, "is not a model's name")
			return true
		}
		entry := translate.ModelEntry{Name: name}
		r.object(path, v, func(path, key string, v jsonValue) bool { return readModel(r, path, key, v, &entry) })
		c.models = append(c.models, entry)
		return true
	})
}

func readModel(r *configReader, path, key string, v jsonValue, m *translate.ModelEntry) bool {
	switch key {
	case "upstream":
		m.Upstream = new(string)
		r.text(path, v, m.Upstream, checkModelName)
	case "max_output_tokens":
		m.MaxOutputTokens = new(int)
		r.number(path, v, m.MaxOutputTokens, 1, 100_000_000)
	case "sampling":
		m.Sampling = new(bool)
		r.truth(path, v, m.Sampling)
	case "caching":
		m.Caching = new(bool)
		r.truth(path, v, m.Caching)
	case "thinking":
		m.Thinking = new(bool)
		r.truth(path, v, m.Thinking)
	case "effort":
		m.Effort = new([]string)
		r.levels(path, v, m.Effort)
	default:
		return false
	}
	return true
}

// configReader walks the configuration and gathers every fault.
type configReader struct {
	faults []string
}

func (r *configReader) fault(path, text string) {
	if path == "" {
		path = "configuration"
	}
	switch {
	case len(r.faults) < configFaultsMax:
		r.faults = append(r.faults, path+": "+text)
	case len(r.faults) == configFaultsMax:
		r.faults = append(r.faults, "configuration: has more faults than are listed here")
	}
}

// object calls read for each member; read returns false for a key it does not know.
func (r *configReader) object(path string, v jsonValue, read func(path, key string, v jsonValue) bool) {
	if v.kind != jsonObject {
		r.fault(path, "must be an object")
		return
	}
	seen := make(map[string]bool, len(v.members))
	for _, m := range v.members {
		at := memberPath(path, m.key)
		switch {
		case seen[m.key]:
			r.fault(at, "is there twice")
		case !read(at, m.key, m.value):
			r.fault(at, "is not a known key")
		}
		seen[m.key] = true
	}
}

func (r *configReader) text(path string, v jsonValue, to *string, check func(string) string) {
	if v.kind != jsonString {
		r.fault(path, "must be a string")
		return
	}
	if fault := check(v.text); fault != "" {
		r.fault(path, fault)
		return
	}
	*to = v.text
}

func (r *configReader) truth(path string, v jsonValue, to *bool) {
	if v.kind != jsonBool {
		r.fault(path, "must be true or false")
		return
	}
	*to = v.truth
}

// number takes whole numbers however they are spelled: Envoy writes a
// configuration that was given as a Struct with its own number format.
func (r *configReader) number(path string, v jsonValue, to *int, least, most int) {
	n, whole := wholeNumber(v.text)
	switch {
	case v.kind != jsonNumber || !whole:
		r.fault(path, "must be a whole number")
	case n < least || n > most:
		r.fault(path, "must be from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
	default:
		*to = n
	}
}

// wholeNumber reads a JSON number that is whole, like 128000, 128000.0 or
// 1.28e5. Beyond what the plugin could ever use it only tells the sign.
func wholeNumber(s string) (n int, whole bool) {
	const beyond = 1 << 53
	digits, negative := strings.CutPrefix(s, "-")
	exponent := 0
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		exponent = readExponent(digits[i+1:])
		digits = digits[:i]
	}
	if i := strings.IndexByte(digits, '.'); i >= 0 {
		exponent -= len(digits) - i - 1
		digits = digits[:i] + digits[i+1:]
	}
	for ; exponent < 0 && strings.HasSuffix(digits, "0"); exponent++ {
		digits = digits[:len(digits)-1]
	}
	digits = strings.TrimLeft(digits, "0")
	switch {
	case digits == "":
		return 0, true
	case exponent < 0:
		return 0, false
	case len(digits)+exponent > 15:
		n = beyond
	default:
		n, _ = strconv.Atoi(digits)
		for range exponent {
			n *= 10
		}
	}
	if negative {
		n = -n
	}
	return n, true
}

// readExponent reads the exponent of a JSON number. One that no digits of a
// configuration could make up for stays there, however long it is.
func readExponent(s string) (exponent int) {
	const most = 2 * configBytesMax
	digits := strings.TrimLeft(s, "+-")
	for i := range len(digits) {
		exponent = min(exponent*10+int(digits[i]-'0'), most)
	}
	if s[0] == '-' {
		return -exponent
	}
	return exponent
}

func (r *configReader) choice(path string, v jsonValue, set func(i int), words ...string) {
	if v.kind != jsonString {
		r.fault(path, "must be a string")
		return
	}
	i := slices.Index(words, v.text)
	if i < 0 {
		r.fault(path, "use one of "+strings.Join(words, ", "))
		return
	}
	set(i)
}

// effortLevels are all levels that there are, lowest first.
var effortLevels = []string{"low", "medium", "high", "xhigh", "max"}

// levels reads a list of effort levels in any order into one with the lowest first.
func (r *configReader) levels(path string, v jsonValue, to *[]string) {
	if v.kind != jsonArray {
		r.fault(path, "must be an array")
		return
	}
	there := make([]bool, len(effortLevels))
	for n, item := range v.items {
		at := path + "[" + strconv.Itoa(n) + "]"
		r.choice(at, item, func(i int) {
			if there[i] {
				r.fault(at, "is there twice")
			}
			there[i] = true
		}, effortLevels...)
	}
	levels := []string{}
	for i, level := range effortLevels {
		if there[i] {
			levels = append(levels, level)
		}
	}
	*to = levels
}

// memberPath writes a.b, or a["odd name"] where the name is no word.
func memberPath(path, key string) string {
	for i := range len(key) {
		if c := key[i]; !isAlnum(c) && c != '_' {
			return path + `["` + printable(key) + `"]`
		}
	}
	if key == "" {
		return path + `[""]`
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// printable is a key of the configuration as it may stand in a log line: some
// readers take characters beyond ASCII for the end of one.
func printable(key string) string {
	out := []byte(key)
	for i, c := range out {
		if c < ' ' || c > '~' || c == '"' {
			out[i] = '?'
		}
	}
	return string(out[:min(len(out), headerValueBytesMax)])
}

func checkPrefix(s string) string {
	if s == "" || s == "/" {
		return "must name at least one segment"
	}
	if strings.HasSuffix(s, "/") {
		return "must not end in a slash"
	}
	return checkPath(s)
}

// checkPath takes an absolute path in RFC 3986's characters, without dot or
// empty segments, query and percent-encoding: it is compared and sent as it is.
func checkPath(s string) string {
	if len(s) > headerValueBytesMax {
		return "is too long"
	}
	rest, ok := strings.CutPrefix(s, "/")
	if !ok {
		return "must begin with a slash"
	}
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return "must not have empty or dot segments"
		}
		for i := range len(segment) {
			if c := segment[i]; !isAlnum(c) && strings.IndexByte("-._~!$&'()*+,;=:@", c) < 0 {
				return "must be a plain path"
			}
		}
	}
	return ""
}

// checkAuthority takes a host with an optional port; "" keeps the client's.
func checkAuthority(s string) string {
	if len(s) > headerValueBytesMax {
		return "is too long"
	}
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && strings.IndexByte("-._~:[]", c) < 0 {
			return "must be a host, or a host and a port"
		}
	}
	return ""
}

func checkPrintable(s string) string {
	if len(s) > headerValueBytesMax {
		return "is too long"
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return "must be of printable ASCII characters"
		}
	}
	return ""
}

func checkVersion(s string) string {
	if s == "" {
		return "must not be empty"
	}
	return checkPrintable(s)
}

func checkModelName(s string) string {
	if !isModelName(s) {
		return "is not a model's name"
	}
	return ""
}
