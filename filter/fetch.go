package main

import "ezat.io/chat-completions/translate"

// downloads are the images that one request names by URL (contract, "Images and
// PDFs"). Of the request itself nothing is kept while they come: its body waits
// in the host, and is read, parsed and decided again when all are here.
//
// The first failure that is known refuses the request at once; of several that
// are known at one moment, that of the first part. Waiting for downloads that
// stand before it would make the reason depend less on their speed, and would
// keep the client, and those who wait for memory, up to 15 s longer.
type downloads struct {
	exchange *exchange
	list     []download
	started  int // of list: those before it have been started
	arrived  int // of list: the images that are here
}

// download is one image on its way, over redirects.
type download struct {
	all       *downloads
	fetch     translate.Fetch
	url       translate.ImageURL // of the hop under way
	redirects int
	deadline  int64 // Unix nanoseconds
	underWay  bool  // the host owes an answer
	reserved  int   // bytes of the imageMemory
	image     translate.Image
}

// fetchImages begins to download. The request is held, and goes on from the
// callback of the last download.
func (x *exchange) fetchImages(fetches []translate.Fetch) Action {
	all := &downloads{exchange: x, list: make([]download, len(fetches))}
	for i := range fetches {
		all.list[i] = download{all: all, fetch: fetches[i]}
	}
	x.request, x.downloads = requestFetching, all
	x.plugin.images.enqueue(all)
	x.plugin.images.run(x)
	return Pause
}

// imagesArrived goes on with a request whose images are all here.
func (x *exchange) imagesArrived() {
	images := make([]translate.Image, len(x.downloads.list))
	for i := range images {
		images[i] = x.downloads.list[i].image
	}
	x.request = requestReading
	_, action := x.translate(images)
	x.endDownloads()
	if action != Continue {
		return
	}
	if err := x.host.ResumeRequest(); err != nil {
		x.breakDown("request", err)
	}
}

// endDownloads lets go of what a request holds or waits for, because it went up
// or because nothing will. What is under way the host does not call off, and
// keeps the bytes of: that is let go with its answer.
func (x *exchange) endDownloads() {
	all := x.downloads
	if all == nil {
		return
	}
	x.downloads = nil
	x.weigh()
	x.plugin.images.dequeue(all)
	for i := range all.list {
		if d := &all.list[i]; !d.underWay {
			d.release()
		}
	}
	x.plugin.images.run(x)
}

// bytesMax bounds the images in the VM, as the plugin of this request has it.
func (a *downloads) bytesMax() int { return a.exchange.plugin.config.images.memoryBytes }

// held is the memory of the images that are here.
func (a *downloads) held() (bytes int) {
	for i := range a.list {
		if d := &a.list[i]; !d.underWay {
			bytes += d.reserved
		}
	}
	return bytes
}

// startNext starts one more download in a part of memory. A bug of ours must end
// this stream, not the one whose callback is running.
func (a *downloads) startNext(reserved int) {
	x := a.exchange
	var action Action
	defer x.guard(&action)
	d := &a.list[a.started]
	a.started++
	if a.started == len(a.list) {
		x.plugin.images.dequeue(a)
	}
	x.plugin.images.reserve(reserved)
	d.reserved = reserved
	if reserved == 0 {
		d.fail(togetherLarger(a.bytesMax()))
		return
	}
	d.deadline = x.host.Now() + imageTimeoutMs*1_000_000
	url, reason := translate.ParseImageURL(d.fetch.URL, x.plugin.config.images.allowPrivate)
	if reason != "" {
		d.fail(reason)
		return
	}
	d.call(url)
}

// call makes the callout for one hop. All hops of a download share its 15 s.
// The headers are these and no others: nothing of the client's, and nothing that
// could ask for a part of the file or for another form of it.
func (d *download) call(url translate.ImageURL) {
	x := d.all.exchange
	cluster, scheme := x.plugin.config.images.httpCluster, "http"
	if url.HTTPS {
		cluster, scheme = x.plugin.config.images.httpsCluster, "https"
	}
	if cluster == "" {
		// Only a redirect leads here: Decide has checked the first URL.
		d.fail("a redirect to " + scheme + ", which is turned off here")
		return
	}
	left := min((d.deadline-x.host.Now())/1_000_000, imageTimeoutMs)
	if left <= 0 {
		d.fail(reasonTimeout)
		return
	}
	headers := [][2]string{
		{":method", "GET"},
		{":path", url.Path},
		{":authority", url.Authority},
		{"accept", "image/jpeg, image/png, image/gif, image/webp"},
		{"accept-encoding", "identity"},
		{"user-agent", "ezat-chat-completions"},
		{"x-image-scheme", scheme},
	}
	d.url = url
	if err := x.host.Call(cluster, headers, int(left), d.answered); err != nil {
		x.host.Log(Error, "images: the host refused the callout: "+err.Error())
		d.fail(reasonNoConnection)
		return
	}
	d.underWay = true
}

// answered is the callout's callback.
func (d *download) answered(result CallResult) {
	d.underWay = false
	x := d.all.exchange
	if x.downloads != d.all {
		// The request has ended without this image.
		d.release()
		x.plugin.images.run(x)
		return
	}
	var action Action
	defer x.guard(&action)
	d.take(result)
}

// take goes on with the answer to one hop.
func (d *download) take(result CallResult) {
	private := d.all.exchange.plugin.config.images.allowPrivate
	location, reason := readAnswer(&result, &d.url)
	switch {
	case reason != "":
		d.fail(reason)
	case location == "":
		d.keep(result.Size)
	case d.redirects == imageRedirectsMax:
		d.fail(reasonRedirects)
	default:
		d.redirects++
		url, reason := d.url.Redirect(location, private)
		if reason != "" {
			d.fail(reason)
			return
		}
		d.call(url)
	}
}

// keep takes a file of size bytes in, if it is an image and fits.
func (d *download) keep(size int) {
	x := d.all.exchange
	if over := d.all.over(d, size); over != nil {
		x.host.Count(imagesFailed, 1)
		x.refuse(over.fetch.Failed(togetherLarger(translate.ImagesBytesMax)), nil)
		return
	}
	if size > d.reserved {
		d.fail(togetherLarger(d.all.bytesMax()))
		return
	}
	x.plugin.images.collect()
	data, err := x.host.TakeBody(CalloutBody, size)
	if err != nil {
		x.host.Log(Error, "images: the host would not give the answer to a callout: "+err.Error())
		d.fail(reasonBroken)
		return
	}
	d.image = translate.Image{Type: translate.ImageType(data), Data: data}
	if d.image.Type == "" {
		d.fail(reasonNotImage)
		return
	}
	x.plugin.images.reserve(size - d.reserved)
	d.reserved = size
	x.host.Count(imagesOK, 1)
	if !x.fits() {
		x.refuse(noRoom(), nil)
		return
	}
	if d.all.arrived++; d.all.arrived == len(d.all.list) {
		x.imagesArrived()
		return
	}
	x.plugin.images.run(x)
}

// over is the image with which those that are here, and d of size bytes, are
// larger than a request's downloads may be, in the order of their parts; nil
// when they are not. A URL counts as often as it is used (decision 26).
func (a *downloads) over(d *download, size int) *download {
	sum := 0
	for i := range a.list {
		other := &a.list[i]
		n := len(other.image.Data)
		if other == d {
			n = size
		}
		if sum += n * other.fetch.Uses; sum > translate.ImagesBytesMax {
			return other
		}
	}
	return nil
}

// fail refuses the request for this image's sake.
func (d *download) fail(reason string) {
	x := d.all.exchange
	x.host.Count(imagesFailed, 1)
	x.refuse(d.fetch.Failed(reason), nil)
}

// release gives back what a download has of the VM's memory.
func (d *download) release() {
	images := d.all.exchange.plugin.images
	images.reserve(-d.reserved)
	images.garbage += len(d.image.Data)
	d.reserved, d.image = 0, translate.Image{}
}
