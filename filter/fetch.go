package main

import "ezat.io/chat-completions/translate"

// downloads are the images that one request names by URL (contract, "Images and
// PDFs"). Of the request itself nothing is kept while they come: its body waits
// in the host, and is read, parsed and decided again when all are here.
//
// The first failure that is known refuses the request at once; of several that
// are known at one moment, that of the first part. Waiting for downloads that
// stand before it would make the reason depend less on their speed, and would
// keep the client, and those who wait for their turn, up to 15 s longer.
type downloads struct {
	exchange *exchange
	list     []download
	started  int   // of list: those before it have been started
	underWay int   // of list: those that the host owes an answer
	arrived  int   // of list: the images that are here
	bytes    int   // of these images
	patience int64 // until when it waits for its turns, Unix nanoseconds
	inLane   bool  // it goes through the lane of the imageMemory

	waits, holds place // in the imageMemory
}

// download is one image on its way, over redirects.
type download struct {
	all       *downloads
	fetch     translate.Fetch
	url       translate.ImageURL // of the hop under way
	redirects int
	deadline  int64 // Unix nanoseconds
	image     translate.Image
}

// fetchImages begins to download. The request is held, and goes on from the
// callback of the last download.
func (x *exchange) fetchImages(fetches []translate.Fetch) Action {
	all := &downloads{exchange: x, list: make([]download, len(fetches)), patience: x.host.Now() + imageWaitMs*1_000_000}
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
// keeps the bytes of: that counts until its answer comes.
func (x *exchange) endDownloads() {
	all := x.downloads
	if all == nil {
		return
	}
	x.downloads = nil
	x.plugin.images.release(all)
	x.weigh()
	x.plugin.images.run(x)
}

// startOver gives back what is here, because there is no room for more, and
// begins again once there is. What is under way comes for nobody.
func (a *downloads) startOver() {
	again := &downloads{exchange: a.exchange, list: make([]download, len(a.list)), patience: a.patience, inLane: true}
	for i := range a.list {
		again.list[i] = download{all: again, fetch: a.list[i].fetch}
	}
	images := a.exchange.plugin.images
	images.release(a)
	a.exchange.downloads = again
	a.exchange.weigh()
	images.enqueue(again)
}

// bytesMax bounds the images in the VM, as the plugin of this request has it.
func (a *downloads) bytesMax() int { return a.exchange.plugin.config.images.memoryBytes }

// held is the memory of the images that are here.
func (a *downloads) held() int { return a.bytes }

// waiting tells whether some of the downloads have not begun.
func (a *downloads) waiting() bool { return a.started < len(a.list) }

// giveUp refuses a request that has waited for its turns too long. No callback of
// its stream is running. The end of another one may just have given it its turns.
func (a *downloads) giveUp() {
	x := a.exchange
	if x.downloads != a || !a.waiting() {
		return
	}
	if err := x.host.Enter(); err != nil {
		x.endDownloads()
		return
	}
	var action Action
	defer x.guard(&action)
	x.host.Count(imagesFailed, 1)
	x.refuse(a.list[a.started].fetch.Waited(), [][2]string{{"retry-after", "1"}})
}

// startNext starts one more download. A bug of ours must end this stream, not the
// one whose callback is running.
func (a *downloads) startNext() {
	x := a.exchange
	var action Action
	defer x.guard(&action)
	d := &a.list[a.started]
	a.started++
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
	d.all.underWay++
	x.plugin.images.underWay++
}

// answered is the callout's callback.
func (d *download) answered(result CallResult) {
	x := d.all.exchange
	images := x.plugin.images
	images.underWay--
	d.all.underWay--
	if x.downloads == d.all {
		d.take(result)
		images.ended(d.all)
	}
	// Else the request has ended without this image, or has begun again.
	images.run(x)
}

// take goes on with the answer to one hop.
func (d *download) take(result CallResult) {
	var action Action
	defer d.all.exchange.guard(&action)
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
	if over := d.all.over(d, size, translate.ImagesBytesMax, true); over != nil {
		over.fail(togetherLarger(translate.ImagesBytesMax))
		return
	}
	if over := d.all.over(d, size, d.all.bytesMax(), false); over != nil {
		over.fail(togetherLarger(d.all.bytesMax()))
		return
	}
	images := x.plugin.images
	if !d.all.inLane && !images.fit(d.all, size) {
		d.all.startOver()
		return
	}
	images.collect()
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
	images.take(d.all, size)
	x.host.Count(imagesOK, 1)
	if !x.fits() {
		x.refuse(noRoom(), nil)
		return
	}
	if d.all.arrived++; d.all.arrived == len(d.all.list) {
		x.imagesArrived()
	}
}

// over is the image with which those that are here, and d of size bytes, are
// larger than bytesMax, in the order of their parts; nil when they are not. What a
// request may download counts a URL as often as it is used (decision 26).
func (a *downloads) over(d *download, size, bytesMax int, used bool) *download {
	sum := 0
	for i := range a.list {
		other := &a.list[i]
		n := len(other.image.Data)
		if other == d {
			n = size
		}
		if used {
			n *= other.fetch.Uses
		}
		if sum += n; sum > bytesMax {
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
