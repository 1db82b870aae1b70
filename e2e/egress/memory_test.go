package egress_test

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"

	"ezat.io/chat-completions/e2e/envoy"
)

// lab is a configuration in which limits are met sooner: memory for two large images
// at once. It also lets private addresses through the filter's own check.
const lab = `{"images":{"allow_private":true,"memory_bytes":20971520}}`

// hostsMax is the lab's bound of names that are known at once.
const hostsMax = 8

// TestLab tries what needs another configuration than the shipped one.
func TestLab(t *testing.T) {
	w := newWorld(t, lab, envoy.ImageDNS(func(c *envoy.Config, place []any) error {
		if err := c.Set(hostsMax, envoy.At(place, "max_hosts")...); err != nil {
			return err
		}
		// ::1 plays a public address of IPv6. Mapped addresses stay what they are.
		return editRanges(c, place, func(prefix string, bits any) []any {
			if prefix == "::" && bits == 3 {
				return []any{cidr("::ffff:0:0", 96), cidr("64:ff9b::", 96)}
			}
			return []any{cidr(prefix, bits)}
		})
	}))
	w.file("png", "image/png", png)
	for _, s := range []scenario{
		{"private addresses", w.testAllowPrivate},
		{"public over IPv6", w.testPublicIPv6},
		{"more than memory", w.testMoreThanMemory},
		{"waiting for memory", w.testWaitingForMemory},
		{"downloads of clients that left", w.testDownloadsOfClientsThatLeft},
		{"more names than the cache has room for", w.testCacheOverflow},
	} {
		t.Run(s.name, s.run)
	}
}

// testAllowPrivate: the setting opens the filter's check, and nothing else.
func (w *world) testAllowPrivate(t *testing.T) {
	before := w.knocks()
	w.try(t, attempt{url: w.plain(publicIP, "/png")})
	for _, host := range []string{privateIP, localIP, "[::ffff:" + privateIP + "]", "0.0.0.0"} {
		w.try(t, attempt{url: w.plain(host, "/png"), reason: notPublic})
	}
	// What is no plain address stays refused: programs disagree about it.
	for _, host := range []string{"127.1", "0x7f.1", "0177.0.0.1"} {
		w.try(t, attempt{url: w.plain(host, "/png"), reason: notPublic})
	}
	if after := w.knocks(); after != before {
		t.Errorf("%d private connections", after-before)
	}
}

// knocks counts the connections to private addresses so far.
func (s *site) knocks() (n int64) {
	for _, d := range s.private {
		n += d.accepted.Load()
	}
	return n
}

// testPublicIPv6: a name with a private address of IPv4 and a public one of IPv6 leads
// to the latter, where this machine has IPv6, and nowhere where it has not.
func (w *world) testPublicIPv6(t *testing.T) {
	a := attempt{url: w.plain(w.host(privateIP, private6), "/png")}
	if l, err := net.Listen("tcp6", "["+private6+"]:0"); err != nil {
		a.reason = noConnection
	} else if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	w.try(t, a)
	// One that has both leads somewhere in any case.
	w.try(t, attempt{url: w.plain(w.host(private6, publicIP), "/png")})
	for _, d := range w.private {
		if host, _, _ := net.SplitHostPort(d.Addr().String()); host != private6 && d.accepted.Load() != 0 {
			t.Errorf("%v is private, and %d connections came", d.Addr(), d.accepted.Load())
		}
	}
}

// testMoreThanMemory: images that can never be in memory together are refused, at
// once, and do not wait for ever.
func (w *world) testMoreThanMemory(t *testing.T) {
	w.page("large", func(rw http.ResponseWriter, r *http.Request) { rw.Write(pngOf(8<<20, len(r.URL.RawQuery))) })
	o, err := w.ask(t.Context(), w.plain(publicIP, "/large?1"), w.plain(publicIP, "/large?22"), w.plain(publicIP, "/large?333"))
	if err != nil {
		t.Fatal(err)
	}
	wantRefused(t, o, "messages[0].content[3].image_url.url: could not download the image (all images together are larger than 20 MB)")
	// Two of them fit.
	o, err = w.ask(t.Context(), w.plain(publicIP, "/large?1"), w.plain(publicIP, "/large?22"))
	if err != nil {
		t.Fatal(err)
	}
	wantServed(t, o, "image/png", pngOf(8<<20, 1), pngOf(8<<20, 2))
}

// testWaitingForMemory: requests whose images have no room together wait for each other,
// and all of them are served.
func (w *world) testWaitingForMemory(t *testing.T) {
	w.page("waiting", func(rw http.ResponseWriter, r *http.Request) { rw.Write(pngOf(2<<20, len(r.URL.RawQuery))) })
	var all []scenario
	for i := range 10 {
		all = append(all, scenario{fmt.Sprint(i), func(t *testing.T) {
			o, err := w.ask(t.Context(), w.plain(publicIP, "/waiting?1"), w.plain(publicIP, "/waiting?22"), w.plain(publicIP, "/waiting?333"))
			if err != nil {
				t.Fatal(err)
			}
			wantServed(t, o, "image/png", pngOf(2<<20, 1), pngOf(2<<20, 2), pngOf(2<<20, 3))
		}})
	}
	together(t, all)
}

// testDownloadsOfClientsThatLeft: those still go on, and keep nobody waiting.
func (w *world) testDownloadsOfClientsThatLeft(t *testing.T) {
	arrived := make(chan struct{}, 2)
	both := make(chan struct{})
	w.page("stuck", func(rw http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	go func() {
		<-arrived
		<-arrived
		close(both)
	}()
	if o, err := w.leave(t, both, w.plain(publicIP, "/stuck?1"), w.plain(publicIP, "/stuck?22")); err == nil {
		t.Errorf("an answer came: %d %s", o.status, o.body)
	}
	w.try(t, attempt{url: w.plain(publicIP, "/png")})
}

// testCacheOverflow: past the number of names that are known at once, new ones are
// refused for the time being.
func (w *world) testCacheOverflow(t *testing.T) {
	var served, refused int
	for range 2 * hostsMax {
		o, err := w.ask(t.Context(), w.plain(w.host(publicIP), "/png"))
		if err != nil {
			t.Fatal(err)
		}
		if o.status == 200 {
			served++
			continue
		}
		refused++
		wantRefused(t, o, failed("too many downloads at the moment"))
	}
	if served >= hostsMax || refused < hostsMax {
		t.Errorf("%d served, %d refused", served, refused)
	}
}

// TestManyImages: 50 requests with 4 images each at once on one worker are all served
// right, within memory's bound, and a chat beside them is answered all the while.
func TestManyImages(t *testing.T) {
	const requests, imagesEach, size, memory = 50, 4, 1 << 20, 32 << 20
	w := newWorld(t, fmt.Sprintf(`{"images":{"memory_bytes":%d}}`, memory))
	w.page("many", func(rw http.ResponseWriter, r *http.Request) { rw.Write(pngOf(size, len(r.URL.RawQuery))) })
	host := w.host(publicIP)
	before := w.memory(t)
	stop := make(chan struct{})
	var chats int
	var beside sync.WaitGroup
	beside.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			o, err := w.ask(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			wantServed(t, o, "")
			chats++
		}
	})
	var all []scenario
	for i := range requests {
		all = append(all, scenario{fmt.Sprint(i), func(t *testing.T) { w.askForMany(t, host, i, imagesEach, size) }})
	}
	together(t, all)
	close(stop)
	beside.Wait()
	after := w.memory(t)
	t.Logf("%d chats beside; resident %d MB before, %d MB at most, %d MB after; allocated %d MB", chats,
		before.Resident>>20, after.Peak>>20, after.Resident>>20, after.Allocated>>20)
	if chats == 0 {
		t.Error("no chat was answered meanwhile")
	}
	// All images together are 200 MB, and 267 MB in base64 on their way up. What may be held at
	// once is the bound, and as much in Envoy's buffers and in memory that is not given back yet.
	if grown := after.Peak - before.Resident; grown > 4*memory {
		t.Errorf("Envoy has grown by %d MB", grown>>20)
	}
	w.wantOnLoopback(t)
}

func (w *world) memory(t *testing.T) envoy.Memory {
	t.Helper()
	m, err := w.envoy.Memory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// askForMany asks for images that no other request asks for.
func (w *world) askForMany(t *testing.T, host string, request, images, size int) {
	var urls []string
	var files [][]byte
	for i := range images {
		n := request*images + i
		query := fmt.Sprintf("%0*d", n, 0)
		urls, files = append(urls, w.plain(host, "/many?"+query)), append(files, pngOf(size, len(query)))
	}
	o, err := w.ask(t.Context(), urls...)
	if err != nil {
		t.Fatal(err)
	}
	wantServed(t, o, "image/png", files...)
}
