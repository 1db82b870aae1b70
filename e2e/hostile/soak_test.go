package hostile_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
)

// soakShort is how long TestSoak takes when nobody asks for more: so the code stays alive.
const soakShort = 10 * time.Second

// soakTime is SOAK, a duration.
func soakTime(t *testing.T) time.Duration {
	text := os.Getenv("SOAK")
	if text == "" {
		return soakShort
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		t.Fatalf("SOAK=%s is no duration of a second or more", text)
	}
	return d
}

// work is one kind of request: how often it comes among the others, and what it does. It
// fails on anything but the right answer.
type work struct {
	name   string
	weight int
	do     func(ctx context.Context, c *http.Client, random *rand.Rand) error

	mu     sync.Mutex
	took   []time.Duration
	failed tally
}

// TestSoak is mixed load from honest and hostile clients on two workers, for as long as
// SOAK says. It fails on a wrong answer or status, on an error in Envoy's log, on a VM
// that dies, on what stays under way, and on memory that grows.
func TestSoak(t *testing.T) {
	d := soakTime(t)
	w := newWorld(t, envoy.Options{Concurrency: 2})
	w.heat(t)
	before := w.state(t)
	kinds := w.works()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	const clients = 6
	var all sync.WaitGroup
	for i := range clients {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		c := newClient(t, i%2 == 1)
		all.Go(func() {
			for ctx.Err() == nil {
				pick(kinds, random).run(t.Context(), c, random)
			}
		})
	}
	memory := w.watch(ctx, t, kinds, d)
	all.Wait()
	w.wantIdle(t)
	t.Logf("%v, %d clients\n%s", d, clients, table(kinds, memory))
	for _, k := range kinds {
		k.failed.report(t, k.name, len(k.took))
		if len(k.took) == 0 && d >= time.Minute {
			t.Errorf("%s: none was done", k.name)
		}
	}
	if fault := grows(memory, growthAllowed(d)); fault != "" {
		t.Error(fault)
	}
	if after := w.state(t); after.vms != before.vms {
		t.Errorf("%d VMs were made anew", after.vms-before.vms)
	}
	w.wantNoErrors(t)
}

// wantNoErrors: Envoy's log has no line at the level "error" or above.
func (w *world) wantNoErrors(t *testing.T) {
	var lines []string
	for line := range strings.Lines(w.envoy.Log()) {
		if strings.Contains(line, "][error]") || strings.Contains(line, "][critical]") {
			lines = append(lines, line)
		}
	}
	if len(lines) > 0 {
		t.Errorf("the log has %d errors; the first:\n%s", len(lines), strings.Join(lines[:min(5, len(lines))], ""))
	}
}

func pick(kinds []*work, random *rand.Rand) *work {
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	n := random.IntN(sum)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	return kinds[0]
}

func (k *work) run(ctx context.Context, c *http.Client, random *rand.Rand) {
	began := time.Now()
	err := k.do(ctx, c, random)
	k.mu.Lock()
	k.took = append(k.took, time.Since(began))
	k.mu.Unlock()
	k.failed.add(err)
}

// works are the kinds of the mix.
func (w *world) works() []*work {
	// asks is a body that is answered with its own mark.
	asks := func(body func(mark string, random *rand.Rand) string, stream bool) func(context.Context, *http.Client, *rand.Rand) error {
		return func(ctx context.Context, c *http.Client, random *rand.Rand) error {
			mark := w.mark()
			r, err := w.patient(ctx, c, body(mark, random))
			w.up.size(mark)
			if err != nil {
				return err
			}
			return r.wantText(mark, stream)
		}
	}
	// padded has so many bytes in front of the question.
	padded := func(padding func(random *rand.Rand) string) func(string, *rand.Rand) string {
		return func(mark string, random *rand.Rand) string {
			return strings.Replace(question("Repeat after me: "+mark, false), `"messages":[`, `"messages":[`+padding(random)+`,`, 1)
		}
	}
	picture := func(size int) func(*rand.Rand) string {
		data := base64.StdEncoding.EncodeToString(append(slices.Clone(png), strings.Repeat("x", size)...))
		return func(*rand.Rand) string {
			return `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}]},{"role":"assistant","content":"yes"}`
		}
	}
	text := func(size int) func(*rand.Rand) string {
		return func(random *rand.Rand) string {
			return `{"role":"system","content":"` + strings.Repeat(string(rune('a'+random.IntN(26))), size) + `"}`
		}
	}
	download := func(path string) func(string, *rand.Rand) string {
		return func(mark string, random *rand.Rand) string {
			return imageQuestion("Repeat after me: "+mark, fmt.Sprintf("%s%s?%d", w.images.url, path, random.IntN(1000)))
		}
	}
	kinds := []*work{
		{name: "small chat", weight: 300, do: func(ctx context.Context, c *http.Client, _ *rand.Rand) error { return w.ask(ctx, c, false) }},
		{name: "stream", weight: 150, do: func(ctx context.Context, c *http.Client, _ *rand.Rand) error { return w.ask(ctx, c, true) }},
		{name: "agent turn of 100 KB", weight: 100, do: asks(func(mark string, _ *rand.Rand) string {
			return calls(strings.Split(strings.TrimSuffix(each(400, "call_#,"), ","), ","), true, "Repeat after me: "+mark)
		}, false)},
		{name: "foreign ids", weight: 30, do: asks(func(mark string, _ *rand.Rand) string {
			return calls(strings.Split(strings.TrimSuffix(each(400, "call.#,"), ","), ","), true, "Repeat after me: "+mark)
		}, false)},
		{name: "image in the body, 1 MB", weight: 30, do: asks(padded(picture(1<<20)), false)},
		{name: "image by URL", weight: 30, do: asks(download("/png"), false)},
		{name: "image by URL, 5 MB", weight: 10, do: asks(download("/large"), false)},
		{name: "8 MB of images", weight: 6, do: asks(padded(func(r *rand.Rand) string { return picture(3<<20)(r) + "," + picture(3<<20)(r) }), false)},
		{name: "24 MB of text", weight: 3, do: w.tooLong(text(24 << 20))},
		{name: "model list", weight: 20, do: w.modelList},
		{name: "refusals", weight: 60, do: w.refusals},
		{name: "hostile bodies", weight: 20, do: w.hostileBody},
		{name: "clients that leave", weight: 60, do: w.leaves},
	}
	return append(kinds, w.faults())
}

// tooLong is a body that the model's window has no room for: an error of the upstream.
func (w *world) tooLong(padding func(*rand.Rand) string) func(context.Context, *http.Client, *rand.Rand) error {
	return func(ctx context.Context, c *http.Client, random *rand.Rand) error {
		r, err := w.patient(ctx, c, strings.Replace(question("hello", false), `"messages":[`, `"messages":[`+padding(random)+`,`, 1))
		if err == nil && (r.Status != http.StatusBadRequest || !strings.Contains(r.Body, "prompt is too long")) {
			err = fmt.Errorf("%d %.300q", r.Status, r.Body)
		}
		return err
	}
}

func (w *world) modelList(ctx context.Context, c *http.Client, _ *rand.Rand) error {
	response, err := c.Do(w.request(http.MethodGet, "/openai/v1/models", "").WithContext(ctx))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// refusals are requests that must be refused, each with its status.
func (w *world) refusals(ctx context.Context, c *http.Client, random *rand.Rand) error {
	good := question("hello", false)
	all := []struct {
		body   string
		status int
	}{
		{strings.Replace(good, "{", `{"n":2,`, 1), 400}, {strings.Replace(good, "{", `{"functions":[{}],`, 1), 400}, {good[:len(good)-1], 400}, {"", 400},
		{strings.Replace(good, `"user"`, `"nobody"`, 1), 400}, {strings.Replace(good, "sonnet", strings.Repeat("x", 600), 1), 404},
	}
	pick := all[random.IntN(len(all))]
	r, err := w.post(ctx, c, pick.body)
	if err == nil && r.Status != pick.status {
		err = fmt.Errorf("%d for %.200q", r.Status, pick.body)
	}
	if err == nil {
		err = r.wantError()
	}
	return err
}

// hostileBody is one of the kinds of testCallIDs, or one of the worst by hand.
func (w *world) hostileBody(ctx context.Context, c *http.Client, random *rand.Rand) error {
	ids, about := idsOfAKind(random)
	b := attackBody{name: about, body: func() string { return calls(ids, random.IntN(2) == 0, "hello") }}
	if random.IntN(8) == 0 {
		all := worstBodies()
		b = all[random.IntN(len(all))]
	}
	r, err := w.patient(ctx, c, b.body())
	switch {
	case err != nil:
	case b.status != 0 && r.Status != b.status:
		err = fmt.Errorf("%d %.300q", r.Status, r.Body)
	case r.Status == http.StatusOK:
		_, err = r.text(false)
	case r.Status >= 500:
		err = fmt.Errorf("%d %.300q", r.Status, r.Body)
	default:
		err = r.wantError()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	return nil
}

// leaves goes away at some moment of an exchange.
func (w *world) leaves(ctx context.Context, c *http.Client, random *rand.Rand) error {
	ctx, leave := context.WithTimeout(ctx, time.Duration(random.IntN(20_000))*time.Microsecond)
	defer leave()
	body := question("hello", random.IntN(2) == 0)
	if random.IntN(3) == 0 {
		body = question("play:silent;", random.IntN(2) == 0)
	}
	_, err := w.post(ctx, c, body)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// faults are upstreams that break off or talk nonsense, as in testUpstreams.
func (w *world) faults() *work {
	w.up.play("silent", func(conn net.Conn) { io.Copy(io.Discard, conn) })
	scripts := append(cuts(), nonsense()...)
	for i, s := range scripts {
		w.up.play(fmt.Sprint("script ", i), s.play)
	}
	return &work{name: "upstream faults", weight: 60, do: func(ctx context.Context, _ *http.Client, random *rand.Rand) error {
		i := random.IntN(len(scripts))
		// A client of its own: what breaks off must not be a fault of another one's.
		transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
		c := &http.Client{Transport: transport, Timeout: patience}
		s := scripts[i]
		r, err := w.patient(ctx, c, question(fmt.Sprintf("play:script %d;", i), s.stream))
		if err == nil {
			err = r.wantEnding(s.want, s.stream)
		} else if s.want == breaks && isReset(err) {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		return nil
	}}
}

// watch takes Envoy's resident memory until the time is over, and reports each minute.
func (w *world) watch(ctx context.Context, t *testing.T, kinds []*work, d time.Duration) (samples []int64) {
	every := max(d/600, 100*time.Millisecond)
	minute := time.Now()
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return samples
		case <-time.After(every):
		}
		m, err := w.envoy.Memory(t.Context())
		if err != nil {
			t.Errorf("memory: %v", err)
			return samples
		}
		samples = append(samples, m.Resident)
		if time.Since(minute) >= time.Minute {
			minute = time.Now()
			done, failed := 0, 0
			for _, k := range kinds {
				k.mu.Lock()
				done += len(k.took)
				k.mu.Unlock()
				k.failed.mu.Lock()
				failed += k.failed.count
				k.failed.mu.Unlock()
			}
			t.Logf("%v: %d requests, %d of them wrong, %d MB resident", time.Since(began).Round(time.Second), done, failed, m.Resident>>20)
		}
	}
}

// growthAllowed is what the last half may have over the first. A run of less than five
// minutes has hardly met its largest bodies, and only shows that the sum is done.
func growthAllowed(d time.Duration) float64 {
	if d < 5*time.Minute {
		return 1
	}
	return 0.05
}

// grows compares the levels of both halves behind a warm-up of a quarter: their medians,
// so that neither a peak nor a moment of rest decides. It returns what is wrong.
func grows(samples []int64, allowed float64) string {
	rest := samples[len(samples)/4:]
	first, last := median(rest[:len(rest)/2]), median(rest[len(rest)/2:])
	if first <= 0 || last <= 0 {
		return "memory was not measured"
	}
	if growth := float64(last)/float64(first) - 1; growth > allowed {
		return fmt.Sprintf("memory grows by %.1f %%: %d MB in the first half, %d MB in the last", 100*growth, first>>20, last>>20)
	}
	return ""
}

func median(samples []int64) int64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/2]
}

// TestGrows holds the sum to samples of which is known whether they grow.
func TestGrows(t *testing.T) {
	series := func(f func(i int) int64) (list []int64) {
		for i := range 400 {
			list = append(list, f(i)<<20)
		}
		return list
	}
	for name, test := range map[string]struct {
		samples []int64
		grows   bool
	}{
		"level":             {series(func(int) int64 { return 300 }), false},
		"a warm-up":         {series(func(i int) int64 { return min(300, 100+int64(i)*3) }), false},
		"peaks":             {series(func(i int) int64 { return 300 + int64(i%10/9)*900 }), false},
		"a peak at the end": {series(func(i int) int64 { return 300 + int64(i/380)*500 }), false},
		"2 % more":          {series(func(i int) int64 { return 300 + int64(i/250)*6 }), false},
		"a leak":            {series(func(i int) int64 { return 300 + int64(i)/4 }), true},
		"a step":            {series(func(i int) int64 { return 300 + int64(i/250)*20 }), true},
		"nothing measured":  {series(func(int) int64 { return 0 }), true},
	} {
		if fault := grows(test.samples, 0.05); (fault != "") != test.grows {
			t.Errorf("%s: %q", name, fault)
		}
	}
}

// table is what was done, kind by kind, and the memory beside it.
func table(kinds []*work, memory []int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s %8s %6s %9s %9s %9s\n", "", "done", "wrong", "p50 ms", "p99 ms", "worst ms")
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for _, k := range kinds {
		slices.Sort(k.took)
		if n := len(k.took); n > 0 {
			fmt.Fprintf(&b, "%-26s %8d %6d %9.1f %9.1f %9.1f\n", k.name, n, k.failed.count, ms(k.took[n/2]), ms(k.took[n*99/100]), ms(k.took[n-1]))
		}
	}
	rest := memory[len(memory)/4:]
	fmt.Fprintf(&b, "resident MB: %d in the first half, %d in the last, %d at most, %d samples",
		median(rest[:len(rest)/2])>>20, median(rest[len(rest)/2:])>>20, slices.Max(append(memory, 0))>>20, len(memory))
	return b.String()
}
