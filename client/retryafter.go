package client

import (
	"net/http"
	"strings"
	"time"
)

// RetryAfter is how long a response says to wait, by Retry-After or one of its
// kin; false where it says nothing that can be understood. received is when it
// came. A time past what a Duration holds is comporta.Never.
//
// Retry-After is understood as RFC 9110, section 10.2.3, has it, and in the
// illegal forms that servers send: with a fraction (rounded up to whole seconds),
// as an RFC 3339 date or one in UTC, as seconds or milliseconds since 1970. Where
// there are several, the longest counts. Where one of its kin tells the same second
// more finely, that counts.
func RetryAfter(resp *http.Response, received time.Time) (wait time.Duration, told bool) {
	var coarse, fine longest
	for _, k := range kin {
		lines := values(resp.Header, k.field)
		if len(lines) == 0 {
			continue
		}
		to, date := &coarse, dateOf(resp.Header, received)
		if k.finer {
			to = &fine
		}
		for _, line := range lines[:min(len(lines), maxHints)] {
			to.hear(line, date, k.read)
		}
	}
	if fine.told && coarse.wait-fine.wait < time.Second {
		return fine.wait, true
	}
	return coarse.wait, coarse.told
}

// kin are the fields that tell it.
var kin = []struct {
	field string
	finer bool // than whole seconds
	read  reader
}{
	{"Retry-After", false, readRetryAfter},
	{"X-Ratelimit-Retry-After", false, readRetryAfter}, // the name that some frameworks give it
	{"Retry-After-Ms", true, readMillis},               // OpenAI and what is generated like its libraries
	{"X-Ms-Retry-After-Ms", true, readMillis},          // Azure
	{"X-Retry-In", true, readDuration},                 // Traefik
}

// A reader reads one value; date is the instant of the response.
type reader func(text string, date time.Time) (time.Duration, bool)

func readMillis(text string, _ time.Time) (time.Duration, bool) {
	n, ok := decimal(text)
	return n.of(time.Millisecond), ok
}

func readDuration(text string, _ time.Time) (time.Duration, bool) { return goDuration(text) }

// longest is the longest wait that was told: each is a lower bound.
type longest struct {
	wait time.Duration
	told bool
}

// hear reads a line, which may be several that a proxy joined. Dates have commas of
// their own.
func (l *longest) hear(line string, date time.Time, read reader) {
	take := func(text string) bool {
		wait, ok := read(strings.Trim(text, " \t"), date)
		if ok {
			l.wait, l.told = max(l.wait, wait), true
		}
		return ok
	}
	if take(line) {
		return
	}
	parts := strings.SplitN(line, ",", maxHints)
	for i := 0; i < len(parts); i++ {
		if i+1 < len(parts) && take(parts[i]+","+parts[i+1]) {
			i++
			continue
		}
		take(parts[i])
	}
}

// readRetryAfter reads one value.
func readRetryAfter(text string, date time.Time) (time.Duration, bool) {
	if n, ok := decimal(text); ok {
		return delay(n, date), true
	}
	if at, ok := parseDate(text, date); ok {
		return max(at.Sub(date), 0), true // Sub saturates, at Never
	}
	return 0, false
}

// delay is a number of seconds, unless it is an instant by mistake: as such it would
// lie between a day ago and a year ahead.
func delay(n number, date time.Time) time.Duration {
	const day = 24 * time.Hour
	if at, ok := n.instant(); ok {
		if d := at.Sub(date); d >= -day && d <= 366*day {
			return max(d, 0)
		}
	}
	return n.up().of(time.Second)
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

// goDuration reads what time.Duration prints, if it is not negative.
func goDuration(text string) (time.Duration, bool) {
	if len(text) > maxText || strings.HasPrefix(text, "+") {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}
