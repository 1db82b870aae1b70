package translate

import (
	"testing"
	"time"
)

func TestUnixSeconds(t *testing.T) {
	for text, want := range map[string]int64{
		"1970-01-01T00:00:00Z":           0,
		"1970-01-01T00:00:01Z":           1,
		"2026-02-19T00:00:00Z":           1771459200,
		"2026-02-19t00:00:00z":           1771459200,
		"2026-02-19 00:00:00Z":           1771459200,
		"2026-02-19T00:00:00.123456789Z": 1771459200,
		"2026-02-19T01:30:00+01:30":      1771459200,
		"2026-02-18T23:00:00-01:00":      1771459200,
		"2024-02-29T12:00:00Z":           1709208000,
		"2000-02-29T00:00:00Z":           951782400,
		"2016-12-31T23:59:60Z":           1483228800,
		"9999-12-31T23:59:59Z":           253402300799,
		"1969-12-31T23:59:59Z":           0,
		"0000-01-01T00:00:00Z":           0,
		"":                               0,
		"2026-02-19":                     0,
		"2026-02-19T00:00:00":            0,
		"2026-02-19T00:00:00.Z":          0,
		"2026-02-19T00:00:00.5":          0,
		"2026-02-19T00:00:00ZZ":          0,
		"2026-02-19T00:00:00+0100":       0,
		"2026-02-19T00:00:00+1:000":      0,
		"2026-02-19T00:00:00+25:00":      0,
		"2026-02-30T00:00:00Z":           0,
		"2023-02-29T00:00:00Z":           0,
		"2100-02-29T00:00:00Z":           0,
		"2026-13-01T00:00:00Z":           0,
		"2026-00-01T00:00:00Z":           0,
		"2026-04-31T00:00:00Z":           0,
		"2026-01-00T00:00:00Z":           0,
		"2026-01-01T24:00:00Z":           0,
		"2026-01-01T00:60:00Z":           0,
		"2026-01-01T00:00:61Z":           0,
		"2026/01/01T00:00:00Z":           0,
		"yesterday, or so, at noon":      0,
		"1771459200":                     0,
	} {
		if got := unixSeconds([]byte(text)); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

// TestUnixSecondsEveryDay holds the calendar against the standard library's.
func TestUnixSecondsEveryDay(t *testing.T) {
	day := time.Date(1970, 1, 1, 13, 14, 15, 0, time.UTC)
	for ; day.Year() < 2405; day = day.AddDate(0, 0, 1) {
		if got := unixSeconds([]byte(day.Format(time.RFC3339))); got != day.Unix() {
			t.Fatalf("%s is %d, want %d", day, got, day.Unix())
		}
	}
}

// FuzzUnixSeconds: times as the standard library writes them are read, and what
// is read of any other text is what the standard library reads, if it reads it.
func FuzzUnixSeconds(f *testing.F) {
	f.Add("2026-02-19T00:00:00.5+01:00", int64(1771459200), int64(500), 90)
	f.Fuzz(func(t *testing.T, text string, seconds, nanos int64, minutes int) {
		at := time.Unix(seconds%(1<<37), nanos%1_000_000_000).In(time.FixedZone("", minutes%1440*60))
		if written := at.Format(time.RFC3339Nano); at.Year() >= 0 && at.Year() <= 9999 {
			if got := unixSeconds([]byte(written)); got != max(0, at.Unix()) {
				t.Fatalf("%s is %d, want %d", written, got, at.Unix())
			}
		}
		got := unixSeconds([]byte(text))
		if want, err := time.Parse(time.RFC3339, text); got != 0 && err == nil && got != want.Unix() {
			t.Fatalf("%q is %d, want %d", text, got, want.Unix())
		}
	})
}
