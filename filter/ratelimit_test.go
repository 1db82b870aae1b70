package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestRateLimits(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Unix()
	got := rateLimits([][2]string{
		{":status", "200"},
		{"anthropic-ratelimit-requests-limit", "50"},
		{"anthropic-ratelimit-requests-remaining", "0"},
		{"anthropic-ratelimit-requests-reset", "2026-11-30T12:06:00Z"},
		{"anthropic-ratelimit-tokens-limit", "80000"},
		{"anthropic-ratelimit-tokens-remaining", " 79000 "},
		{"anthropic-ratelimit-tokens-reset", "2026-11-30T11:00:00Z"},
		{"anthropic-ratelimit-input-tokens-limit", "1"},
		{"anthropic-ratelimit-output-tokens-reset", "2026-11-30T12:06:00Z"},
		{"anthropic-ratelimit-requests-limit", "many"},
		{"anthropic-ratelimit-requests-reset", "soon"},
		{"anthropic-ratelimit-requests-burst", "1"},
		{"anthropic-ratelimit-requests", "1"},
		{"anthropic-ratelimit-requests-limit", "51"},
	}, now)
	want := [][2]string{
		{"x-ratelimit-limit-requests", "50"},
		{"x-ratelimit-remaining-requests", "0"},
		{"x-ratelimit-reset-requests", "6m0s"},
		{"x-ratelimit-limit-tokens", "80000"},
		{"x-ratelimit-remaining-tokens", "79000"},
		{"x-ratelimit-reset-tokens", "0s"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestTimeLeft(t *testing.T) {
	for seconds, want := range map[int64]string{-5: "0s", 0: "0s", 1: "1s", 59: "59s", 60: "1m0s", 3599: "59m59s", 3600: "1h0m0s", 93601: "26h0m1s",
		1 << 62: "8760h0m0s"} {
		if got := timeLeft(seconds); got != want {
			t.Errorf("%d: %s, want %s", seconds, got, want)
		}
	}
}

// TestParseMomentAgreesWithTime compares with package time on good moments,
// and takes nothing that it refuses but leap seconds and days that a month has not.
func TestParseMomentAgreesWithTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		zone := time.FixedZone("", (r.IntN(2*24*60-1)-24*60+1)*60)
		at := time.Unix(r.Int64N(250_000_000_000)-60_000_000_000, 0).In(zone)
		if at.Year() < 0 || at.Year() > 9999 {
			continue
		}
		got, ok := parseMoment(at.Format(time.RFC3339))
		if !ok || got != at.Unix() {
			t.Fatalf("%s: %d %v, want %d", at.Format(time.RFC3339), got, ok, at.Unix())
		}
		if got, ok = parseMoment(at.Add(time.Millisecond).Format("2006-01-02T15:04:05.000Z07:00")); !ok || got != at.Unix()+1 {
			t.Fatalf("%s: a fraction is not rounded up: %d %v", at, got, ok)
		}
	}
	const good = "2026-11-30T12:06:00+01:30"
	for i := range len(good) {
		for c := range 128 {
			s := good[:i] + string(rune(c)) + good[i+1:]
			_, ok := parseMoment(s)
			_, err := time.Parse(time.RFC3339, s)
			lenient := s[5:7] == "11" && s[8:10] == "31" || s[17:19] == "60" || s[23:25] == "60" || s[10] == 't'
			if ok != (err == nil) && !lenient {
				t.Errorf("%q: %v, package time says %v", s, ok, err)
			}
		}
	}
	for _, s := range []string{"", "2026", "2026-11-30T12:06:00", "2026-11-30T12:06:00.Z", "2026-11-30T12:06:00.5", "2026-11-30 12:06:00Z", good + "x"} {
		if _, ok := parseMoment(s); ok {
			t.Errorf("%q is taken for a moment", s)
		}
	}
}
