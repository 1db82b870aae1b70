package translate

import (
	"bytes"
	"strconv"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

// imageTypes are the types that the upstream takes (contract, "Images and PDFs").
var imageTypes = [...]string{"image/jpeg", "image/png", "image/gif", "image/webp"}

const pdfType = "application/pdf"

var (
	imageKeys = newKeys("url")
	fileKeys  = newKeys("file_data", "file_id")
)

// image reads an image_url part's image_url (decisions 24 and 25).
func (c *conversation) image(v jsontext.Value, b *block) *fault {
	var m [1]jsontext.Value
	if !v.Sent() {
		return bad("is required").in("image_url")
	}
	if f := subobject(v, imageKeys, m[:]); f != nil {
		return f.in("image_url")
	}
	if f := c.imageURL(m[0], b); f != nil {
		return f.in("url").in("image_url")
	}
	return nil
}

func (c *conversation) imageURL(v jsontext.Value, b *block) *fault {
	if v.Kind() != jsontext.String {
		return bad("must be a string")
	}
	b.kind = imageBlock
	url := c.parser.kept.text.of(v)
	switch {
	case hasPrefixFold(url, "data:"):
	case hasPrefixFold(url, "http://"), hasPrefixFold(url, "https://"):
		return c.fetch(string(url), b)
	default:
		return bad("must be a base64 data URL or an http(s) URL")
	}
	declared, data, f := dataURL(url, v.Base64())
	if f != nil {
		return f
	}
	if b.media = declared; declared == "" || declared == pdfType {
		return bad("must be of type image/jpeg, image/png, image/gif or image/webp")
	}
	seen := sniff(data)
	switch {
	case seen == pdfType:
		return bad("is a PDF; send it in a file part")
	case seen != "":
		b.media = seen
	}
	b.body = data
	return nil
}

// fetch notes an image that must be downloaded: the same URL once.
func (c *conversation) fetch(url string, b *block) *fault {
	if f := c.parser.Images.check(url); f != nil {
		return f
	}
	if c.urls++; c.urls > imageURLsMax {
		return bad("a request may have at most " + strconv.Itoa(imageURLsMax) + " image URLs")
	}
	fetches := &c.request.fetches
	for i := range *fetches {
		if f := &(*fetches)[i]; f.URL == url {
			f.Uses++
			b.fetch = int32(i) + 1
			return nil
		}
	}
	path := "messages[" + strconv.Itoa(c.index) + "].content[" + strconv.Itoa(c.partIndex) + "].image_url.url"
	*fetches = append(*fetches, Fetch{URL: url, Path: path, Uses: 1})
	b.fetch = int32(len(*fetches))
	return nil
}

// file reads a file part's file: a PDF as file_data.
func (c *conversation) file(v jsontext.Value, b *block) *fault {
	if !v.Sent() {
		return bad("is required").in("file")
	}
	var m [2]jsontext.Value
	if f := subobject(v, fileKeys, m[:]); f != nil {
		return f.in("file")
	}
	if m[1].Sent() {
		return bad("send the PDF as file_data (a base64 data URL); file_id is not supported").in("file")
	}
	if f := c.pdf(m[0], b); f != nil {
		return f.in("file_data").in("file")
	}
	return nil
}

func (c *conversation) pdf(v jsontext.Value, b *block) *fault {
	const text = "must be a base64 data URL: data:application/pdf;base64,…"
	switch {
	case !v.Sent():
		return bad("is required")
	case v.Kind() != jsontext.String:
		return bad("must be a string")
	}
	url := c.parser.kept.text.of(v)
	if !hasPrefixFold(url, "data:") {
		return bad(text)
	}
	declared, data, f := dataURL(url, v.Base64())
	if f != nil {
		return f
	}
	if declared != pdfType {
		return bad("must be of type application/pdf")
	}
	b.kind, b.media, b.body = documentBlock, pdfType, data
	return nil
}

// dataURL takes a data URL apart: its type as fileType names it, parameters left
// out, and its base64 without white space (decision 24). checked tells that the scanner
// has looked at the base64 (jsontext, Value.Base64).
func dataURL(url []byte, checked bool) (mediaType string, data []byte, f *fault) {
	const text = "must be a base64 data URL: data:<type>;base64,<data>"
	head := url[len("data:"):min(len(url), dataURLHeadBytesMax)]
	comma := bytes.IndexByte(head, ',')
	if comma < 0 {
		return "", nil, bad(text)
	}
	data = url[len("data:")+comma+1:]
	head = head[:comma]
	first, last := bytes.IndexByte(head, ';'), bytes.LastIndexByte(head, ';')
	if first < 0 || !equalFold(bytes.TrimSpace(head[last+1:]), "base64") {
		return "", nil, bad(text)
	}
	if data, f = base64Of(data, checked); f != nil {
		return "", nil, f
	}
	return fileType(bytes.TrimSpace(head[:first])), data, nil
}

// fileType is the type, of those that the upstream takes, that a data URL declares;
// "" for another one.
func fileType(declared []byte) string {
	for _, t := range imageTypes {
		if equalFold(declared, t) {
			return t
		}
	}
	switch {
	case equalFold(declared, "image/jpg"):
		return "image/jpeg"
	case equalFold(declared, pdfType):
		return pdfType
	}
	return ""
}

// equalFold tells whether b is an ASCII text in lower case, whatever the case in b.
func equalFold(b []byte, text string) bool { return len(b) == len(text) && hasPrefixFold(b, text) }

// hasPrefixFold tells whether b begins with an ASCII prefix in lower case,
// whatever the case in b.
func hasPrefixFold(b []byte, prefix string) bool {
	if len(b) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		c := b[i]
		if c-'A' <= 25 {
			c |= 0x20
		}
		if c != prefix[i] {
			return false
		}
	}
	return true
}
