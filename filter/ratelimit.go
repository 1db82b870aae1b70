package main

import (
	"strconv"
	"strings"
)

// rateLimits gives the upstream's rate-limit headers in OpenAI's names
// (operator.md, "Headers"): `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`.
//
// Where the upstream speaks of moments (RFC 3339), OpenAI speaks of the time
// that is left, written like 6m0s or 1s: whole seconds, rounded up, never below
// zero; now is in Unix seconds. Its input and output token limits have no name
// there. A value that cannot be read is left out, and so is the second one for a
// name.
func rateLimits(pairs [][2]string, now int64) [][2]string {
	var out [][2]string
	for _, p := range pairs {
		if !isRateLimit(p) {
			continue
		}
		rest := p[0][len(rateLimitPrefix):]
		what, kind, ok := strings.Cut(rest, "-")
		if !ok || what != "requests" && what != "tokens" {
			continue
		}
		value := strings.TrimSpace(p[1])
		switch kind {
		case "limit", "remaining":
			if _, err := strconv.ParseUint(value, 10, 64); err != nil {
				continue
			}
		case "reset":
			at, ok := parseMoment(value)
			if !ok {
				continue
			}
			value = timeLeft(at - now)
		default:
			continue
		}
		name := "x-ratelimit-" + kind + "-" + what
		if lookup(out, name) == "" {
			out = append(out, [2]string{name, value})
		}
	}
	return out
}

const rateLimitPrefix = "anthropic-ratelimit-"

func isRateLimit(p [2]string) bool { return strings.HasPrefix(p[0], rateLimitPrefix) }

// timeLeft writes a number of seconds as OpenAI does: 1s, 6m0s, 26h0m1s.
func timeLeft(seconds int64) string {
	const year = 365 * 24 * 3600
	seconds = max(0, min(seconds, year))
	out := strconv.FormatInt(seconds%60, 10) + "s"
	if seconds >= 60 {
		out = strconv.FormatInt(seconds/60%60, 10) + "m" + out
	}
	if seconds >= 3600 {
		out = strconv.FormatInt(seconds/3600, 10) + "h" + out
	}
	return out
}

// parseMoment reads an RFC 3339 time as Unix seconds, rounded up. Package time
// could do it, at the price of its tables of zones and layouts.
func parseMoment(s string) (unix int64, ok bool) {
	const form = "0000-00-00T00:00:00"
	if len(s) < len(form)+1 {
		return 0, false
	}
	for i := range len(form) {
		digit := '0' <= s[i] && s[i] <= '9'
		if form[i] == '0' && !digit || form[i] != '0' && s[i] != form[i] && (form[i] != 'T' || s[i] != 't') {
			return 0, false
		}
	}
	field := func(from, to int) int {
		n := 0
		for _, c := range s[from:to] {
			n = n*10 + int(c-'0')
		}
		return n
	}
	month, day := field(5, 7), field(8, 10)
	hour, minute, second := field(11, 13), field(14, 16), field(17, 19)
	if month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	rest := s[len(form):]
	if rest[0] == '.' {
		digits := strings.TrimLeft(rest[1:], "0123456789")
		if len(digits) == len(rest)-1 {
			return 0, false
		}
		rest = digits
		second++
	}
	offset, ok := parseOffset(rest)
	days := daysSince1970(field(0, 4), month, day)
	return int64(((days*24+hour)*60+minute)*60+second) - offset, ok
}

// daysSince1970 counts in the Gregorian calendar. Years begin in March here, so
// that the day that some have and others have not is the last.
func daysSince1970(year, month, day int) int {
	if month < 3 {
		year--
		month += 12
	}
	const until1970 = 719_468
	return year*365 + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - until1970
}

// parseOffset reads Z or ±hh:mm as seconds.
func parseOffset(s string) (seconds int64, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	if len(s) != 6 || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	hours, err := strconv.ParseUint(s[1:3], 10, 8)
	minutes, err2 := strconv.ParseUint(s[4:6], 10, 8)
	if err != nil || err2 != nil || hours > 23 || minutes > 59 {
		return 0, false
	}
	seconds = int64(hours*3600 + minutes*60)
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}
