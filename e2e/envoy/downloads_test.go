package envoy_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
)

// TestForgottenNameEndsNoDownload: a picture may take longer than the DNS cache
// remembers its host.
func TestForgottenNameEndsNoDownload(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "image/png")
		for i := range len(png) {
			if _, err := w.Write([]byte{png[i]}); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(time.Second / 2)
		}
	}))
	t.Cleanup(server.Close)
	forget := envoy.ImageDNS(func(c *envoy.Config, place []any) error {
		// A name's age is looked at when it is looked up again.
		if err := c.Set("1s", envoy.At(place, "dns_refresh_rate")...); err != nil {
			return err
		}
		if err := c.Add("1s", envoy.At(place, "dns_min_refresh_rate")...); err != nil {
			return err
		}
		return c.Set("1s", envoy.At(place, "host_ttl")...)
	})
	e, up := start(t, envoy.Options{Plugin: `{"images":{"allow_private":true}}`, Edits: []envoy.Edit{openLab, forget}})
	up.Script(func(*standin.Recorded) *standin.Response { return standin.JSON(200, []byte(message)) })
	image := strings.Replace(hello, `"Say hello."`, `[{"type":"image_url","image_url":{"url":"`+server.URL+`/a.png"}}]`, 1)
	wantAnswer(t, chat(t, client(t, false), e, image))
	if sent := up.Requests(); len(sent) != 1 || !strings.Contains(string(sent[0].Body), base64.StdEncoding.EncodeToString([]byte(png))) {
		t.Errorf("the picture did not go up: %v", sent)
	}
	if n := stat(t, e, "dns_cache.images.host_removed"); n == 0 {
		t.Error("the host was not forgotten meanwhile")
	}
}
