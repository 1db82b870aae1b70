package translate

// unixSeconds reads an RFC 3339 time, and gives 0 for what is none or lies
// before 1970. Fractions of a second are dropped. (The package time would bring
// zones, formatting and a clock into the module for this one field.)
func unixSeconds(text []byte) int64 {
	const shape = "0000-00-00T00:00:00"
	if len(text) <= len(shape) {
		return 0
	}
	for i, want := range []byte(shape) {
		c := text[i]
		switch {
		case want == '0' && c-'0' > 9, want == '-' && c != '-', want == ':' && c != ':':
			return 0
		case want == 'T' && c|0x20 != 't' && c != ' ':
			return 0
		}
	}
	year, month, day := 100*pair(text[0:])+pair(text[2:]), pair(text[5:]), pair(text[8:])
	hour, minute, second := pair(text[11:]), pair(text[14:]), pair(text[17:])
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 60 {
		return 0
	}
	offset, ok := zone(afterFraction(text[len(shape):]))
	if !ok {
		return 0
	}
	return max(0, ((daysSince1970(year, month, day)*24+hour)*60+minute)*60+second-offset)
}

func pair(b []byte) int64 { return int64(b[0]-'0')*10 + int64(b[1]-'0') }

// afterFraction passes over a fraction of a second; nothing is left of a broken
// one.
func afterFraction(b []byte) []byte {
	if len(b) == 0 || b[0] != '.' {
		return b
	}
	i := 1
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == 1 {
		return nil
	}
	return b[i:]
}

// zone reads `Z` or `±hh:mm`, in seconds east of Greenwich.
func zone(b []byte) (seconds int64, ok bool) {
	if len(b) == 1 {
		return 0, b[0]|0x20 == 'z'
	}
	if len(b) != 6 || b[0] != '+' && b[0] != '-' || b[3] != ':' {
		return 0, false
	}
	for _, i := range [...]int{1, 2, 4, 5} {
		if b[i]-'0' > 9 {
			return 0, false
		}
	}
	hours, minutes := pair(b[1:]), pair(b[4:])
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	seconds = (hours*60 + minutes) * 60
	if b[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

func leap(year int64) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysIn(year, month int64) int64 {
	switch month {
	case 2:
		if leap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysSince1970 counts in years that begin on 1 March, so that a leap day is the
// last one of its year, and eras of 400 years, which all have 146,097 days.
func daysSince1970(year, month, day int64) int64 {
	const (
		daysPerEra     = 146_097
		daysUntil1970  = 719_468 // from 1 March of the year 0
		monthsFromHere = 9
	)
	if month <= 2 {
		year--
	}
	yearOfEra := (year + 400) % 400
	era := (year + 400) / 400
	dayOfYear := (153*((month+monthsFromHere)%12)+2)/5 + day - 1
	return (era-1)*daysPerEra + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - daysUntil1970
}
