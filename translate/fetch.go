package translate

// Fetch is an image that must be downloaded before the request can go up.
type Fetch struct {
	// URL is where it is, as the client sent it.
	URL string
	// Path names the first part that asks for it, in error texts:
	// messages[0].content[2].image_url.url.
	Path string
	// Uses counts the parts that ask for it (decision 26).
	Uses int
}

// ImagePolicy says which image URLs can be fetched (operator's contract, `images`).
type ImagePolicy struct {
	// HTTP and HTTPS: there is a way out for the scheme.
	HTTP, HTTPS bool
	// Private lets literal private addresses and localhost through.
	Private bool
}

// check refuses a URL whose scheme is turned off, or that ParseImageURL refuses.
func (p ImagePolicy) check(url string) *fault {
	_, reason := ParseImageURL(url, p.Private)
	switch {
	case hasPrefixFold([]byte(url), "https:") && !p.HTTPS, hasPrefixFold([]byte(url), "http:") && !p.HTTP:
		return bad("image downloads are turned off here; send the image as a data URL")
	case reason != "":
		return bad(downloadFailed(reason))
	}
	return nil
}

// Image is a downloaded image.
type Image struct {
	// Type is what its first bytes show (ImageType).
	Type string
	// Data is the file itself.
	Data []byte
}

// Failed is the refusal of a request whose image could not be downloaded
// (contract, "Images and PDFs"). The reason stands in the text as it is, so it
// must not tell more of a private network than that an address is not public.
func (f *Fetch) Failed(reason string) *Error {
	fault := fault{path: f.Path, text: downloadFailed(reason)}
	return fault.refused()
}

// Waited is the answer to a request whose image could not be asked for in time,
// because so many others were: the client may try again (contract, "Errors", 503).
func (f *Fetch) Waited() *Error {
	e, refused := rowOf(503).error(""), f.Failed("too many downloads were waiting")
	e.Message, e.Field = refused.Message, refused.Field
	return e
}

func downloadFailed(reason string) string { return "could not download the image (" + reason + ")" }

// ImageType tells which of the four image types a file is by its first bytes, ""
// for any other. Twelve bytes are enough; no content-type is believed.
func ImageType(head []byte) string {
	if kind := sniffBytes(head[:min(len(head), 12)]); kind != pdfType {
		return kind
	}
	return ""
}

// Resolve gives the plan its images, one for each of Fetches in their order. The
// images must stay unchanged until the plan is written.
func (p *Plan) Resolve(images []Image) { p.images = images }
