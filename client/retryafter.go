package client

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta"
)

// RetryAfter is how long a response says to wait, by Retry-After or one of its
// kin; false where it says nothing that can be understood. received is when it
// came. A time past what a Duration holds is comporta.Never.
//
// Retry-After is understood as RFC 9110, section 10.2.3, has it, and in the
// illegal forms that servers send: with a fraction (rounded up to whole seconds),
// as an RFC 3339 date or one in UTC, as seconds or milliseconds since 1970. Where
// there are several, the longest counts.
func RetryAfter(resp *http.Response, received time.Time) (wait time.Duration, told bool) {
	hear := func(d time.Duration, ok bool) {
		if ok {
			wait, told = max(wait, d), true
		}
	}
	for _, line := range values(resp.Header, "Retry-After") {
		date := dateOf(resp.Header, received)
		d, ok := readRetryAfter(line, date)
		if !ok && strings.Contains(line, ",") { // two lines that a proxy joined
			for part := range strings.SplitSeq(line, ",") {
				hear(readRetryAfter(part, date))
			}
			continue
		}
		hear(d, ok)
	}
	for _, k := range kin {
		for _, line := range values(resp.Header, k.field) {
			d, ok := k.read(strings.TrimSpace(line))
			// A finer value of the same second replaces the coarser; else the longer counts.
			if ok && told && k.finer && d <= wait && wait-d < time.Second {
				wait = d
				continue
			}
			hear(d, ok)
		}
	}
	return wait, told
}

// kin are the fields that say the same in other words.
var kin = []struct {
	field string
	finer bool // than whole seconds
	read  func(string) (time.Duration, bool)
}{
	{"Retry-After-Ms", true, millis},      // OpenAI and what is generated like its libraries
	{"X-Ms-Retry-After-Ms", true, millis}, // Azure
	{"X-Retry-In", true, goDuration},      // Traefik
}

// readRetryAfter reads one value.
func readRetryAfter(text string, date time.Time) (time.Duration, bool) {
	text = strings.Trim(text, " \t")
	if text == "" {
		return 0, false
	}
	if n, ok := decimal(text); ok {
		return delay(math.Ceil(n), date), true
	}
	if at, ok := parseDate(text, date); ok {
		return max(at.Sub(date), 0), true
	}
	return 0, false
}

// delay is a number of seconds, unless it is an instant by mistake.
func delay(seconds float64, date time.Time) time.Duration {
	const day = 24 * time.Hour
	for _, unit := range []time.Duration{time.Second, time.Millisecond} {
		if seconds < 1e9 || seconds > 1e14 {
			break
		}
		at := time.Unix(0, 0).Add(time.Duration(min(seconds, float64(math.MaxInt64/int64(unit)/2))) * unit)
		if d := at.Sub(date); d > -day && d < 366*day {
			return max(d, 0)
		}
	}
	return scaled(seconds, time.Second)
}

// scaled is n units, in whole microseconds, or Never where that is too long.
func scaled(n float64, unit time.Duration) time.Duration {
	if n >= math.Floor(float64(math.MaxInt64)/float64(unit)) {
		return comporta.Never
	}
	return time.Duration(math.Ceil(n*float64(unit)/1e3)) * time.Microsecond
}

// decimal reads digits, with a fraction or without.
func decimal(text string) (float64, bool) {
	whole, fraction, dotted := strings.Cut(text, ".")
	if !digits(whole) || dotted && !digits(fraction) {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil || math.IsInf(n, 1) // any number of digits is a number
}

func digits(text string) bool {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return text != ""
}

func millis(text string) (time.Duration, bool) {
	n, ok := decimal(text)
	return scaled(n, time.Millisecond), ok
}

// goDuration reads what time.Duration prints, if it is not negative.
func goDuration(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0 && !strings.HasPrefix(text, "+")
}

// dateOf is the instant of a response by the server's clock: its Date, else when
// it was received.
func dateOf(h http.Header, received time.Time) time.Time {
	if date, err := http.ParseTime(strings.TrimSpace(first(h, "Date"))); err == nil {
		return date
	}
	return received.Round(0)
}

// lenient are layouts of dates that are not HTTP's, and are sent for it.
var lenient = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04:05Z0700",
	"Mon, 2 Jan 2006 15:04:05 GMT", time.RFC1123, time.RFC1123Z, "Mon, 2 Jan 2006 15:04:05 MST",
}

// parseDate reads an HTTP-date, or what is sent for one.
func parseDate(text string, date time.Time) (time.Time, bool) {
	if len(text) > 64 {
		return time.Time{}, false
	}
	if at, err := http.ParseTime(text); err == nil {
		// A year of two digits that seems to be more than 50 years ahead is the one in the
		// past, and the other way round (RFC 9110, section 5.6.7).
		if strings.Contains(text, "-") {
			for at.Year() > date.Year()+50 {
				at = at.AddDate(-100, 0, 0)
			}
			for at.Year() <= date.Year()-50 {
				at = at.AddDate(100, 0, 0)
			}
		}
		return at, true
	}
	for _, layout := range lenient {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if name, offset := at.Zone(); offset == 0 && name != "UTC" && name != "GMT" && name != "" && name != "Z" {
			return time.Time{}, false // a zone whose offset nobody knows
		}
		return at, true
	}
	return time.Time{}, false
}

// values are a field's lines, under whatever spelling of its name.
func values(h http.Header, name string) []string {
	if v, ok := h[name]; ok {
		return v
	}
	for key, v := range h {
		if len(key) == len(name) && strings.EqualFold(key, name) {
			return v
		}
	}
	return nil
}

func first(h http.Header, name string) string {
	if v := values(h, name); len(v) > 0 {
		return v[0]
	}
	return ""
}
