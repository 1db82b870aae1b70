package standin

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	_ "image/gif"  // the sizes of GIF images
	_ "image/jpeg" // of JPEG images
	_ "image/png"  // of PNG images
	"net/url"
	"regexp"
	"strings"
)

// Limits of images and documents.
const (
	imageBytesMax      = 10_485_760 // one image, decoded
	imageSideMax       = 8000       // pixels
	imageSideManyMax   = 2000       // pixels, in a request of many images
	imagesManyMin      = 21         // images and documents that are many
	mediaMax           = 600        // images of a request
	mediaSmallMax      = 100        // the same for models with a context below 1M
	pagesMax           = 600        // pages of a PDF
	pagesSmallMax      = 100        // the same for models with a context below 1M
	contextLargeTokens = 1_000_000
)

// medium is one image or document of a request with its path.
type medium struct {
	path  string
	block node
}

// media lists the images and documents of all messages, those inside tool
// results and documents included.
func (r *request) media() []medium {
	var found []medium
	var collect func(path string, content []node)
	collect = func(path string, content []node) {
		for i, block := range content {
			place := at(path, i)
			switch kind := block.text("type"); kind {
			case "image":
				found = append(found, medium{place + ".image.source", block})
			case "document":
				found = append(found, medium{place + ".document.source", block})
				collect(place+".document.source.content.content", blocks(block.at("source").at("content")))
			case "tool_result":
				collect(place+".tool_result.content", blocks(block.at("content")))
			}
		}
	}
	for i, message := range r.body.at("messages").kids {
		collect(fmt.Sprintf("messages.%d.content", i), blocks(message.at("content")))
	}
	return found
}

func (r *request) checkMedia() *APIError {
	found := r.media()
	limit := mediaMax
	if r.model.context < contextLargeTokens {
		limit = mediaSmallMax
	}
	if len(found) > limit {
		return invalid("messages: Too many images and documents: %d > %d", len(found), limit)
	}
	side := imageSideMax
	if len(found) >= imagesManyMin {
		side = imageSideManyMax
	}
	for _, m := range found {
		if err := r.checkMedium(m, side); err != nil {
			return err
		}
	}
	return nil
}

func (r *request) checkMedium(m medium, side int) *APIError {
	source := m.block.at("source")
	switch source.text("type") {
	case "url":
		if u, err := url.Parse(source.text("url")); err != nil || u.Scheme != "https" || u.Host == "" {
			return invalid("%s.url.url: Only HTTPS URLs are supported.", m.path)
		}
		return nil
	case "file":
		return notFound("File not found: " + source.text("file_id"))
	case "text":
		if source.text("data") == "" {
			return invalid("%s.text.data: String should have at least 1 character", m.path)
		}
		return nil
	case "content":
		return checkInnerTexts(m.path+".content.content", blocks(source.at("content")))
	}
	data, ok := decodeBase64(source.text("data"))
	if !ok {
		return invalid("%s.base64.data: Invalid base64 data", m.path)
	}
	if m.block.text("type") == "document" {
		return r.checkPDF(m.path, data)
	}
	return checkImage(m.path, source.text("media_type"), data, side)
}

// decodeBase64 takes the standard alphabet with padding, not empty, without
// the line feeds that Go's decoder skips.
func decodeBase64(s string) ([]byte, bool) {
	if s == "" || strings.ContainsAny(s, "\r\n") {
		return nil, false
	}
	data, err := base64.StdEncoding.Strict().DecodeString(s)
	return data, err == nil
}

func checkImage(path, declared string, data []byte, side int) *APIError {
	if len(data) > imageBytesMax {
		return invalid("%s.base64: image exceeds 10 MB maximum: %d bytes > %d bytes", path, len(data), imageBytesMax)
	}
	actual := imageType(data)
	if actual == "" {
		return invalid("%s.base64.data: Could not process image", path)
	}
	if actual != declared {
		return invalid("%s.base64.data: The image was specified using the %s media type, but the image appears to be a %s image", path, declared, actual)
	}
	width, height := imageSize(data)
	if width <= side && height <= side {
		return nil
	}
	if side == imageSideManyMax {
		return invalid("%s.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: %d pixels", path, side)
	}
	return invalid("%s.base64.data: At least one of the image dimensions exceed max allowed size: %d pixels", path, side)
}

// imageType tells the type by the first bytes, "" when it is none of the
// four.
func imageType(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// imageSize reads width and height in pixels, 0 where the header is cut off:
// tests use such stubs, and the type is all that a translator looks at.
func imageSize(data []byte) (width, height int) {
	if imageType(data) == "image/webp" {
		return webpSize(data)
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return 0, 0
	}
	return config.Width, config.Height
}

// webpSize reads the three kinds of WebP header: lossy, lossless, extended.
func webpSize(data []byte) (width, height int) {
	if len(data) < 30 {
		return 0, 0
	}
	u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	switch string(data[12:16]) {
	case "VP8 ":
		return int(u16(data[26:]) & 0x3fff), int(u16(data[28:]) & 0x3fff)
	case "VP8L":
		bits := u32(data[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X":
		return int(u32(data[24:])&0xffffff) + 1, int(u32(data[26:])>>8) + 1
	}
	return 0, 0
}

var pdfPage = regexp.MustCompile(`/Type\s*/Page[^s]`)

func (r *request) checkPDF(path string, data []byte) *APIError {
	if !bytes.HasPrefix(data, []byte("%PDF-")) {
		return invalid("%s.base64.data: The PDF specified was not valid.", path)
	}
	if bytes.Contains(data, []byte("/Encrypt")) {
		return invalid("%s.base64.data: The PDF specified is password protected.", path)
	}
	limit := pagesMax
	if r.model.context < contextLargeTokens {
		limit = pagesSmallMax
	}
	// Pages in compressed object streams are not seen; the limit is then
	// taken as kept.
	if len(pdfPage.FindAllIndex(data, limit+1)) > limit {
		return invalid("%s.base64.data: A maximum of %d PDF pages may be provided.", path, limit)
	}
	return nil
}
