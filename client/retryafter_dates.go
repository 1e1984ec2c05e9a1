package client

import (
	"net/http"
	"strings"
	"time"
)

// maxText is how long a date or a duration may be to be read.
const maxText = 64

// dateOf is the instant of a response by the server's clock: its Date, else when
// it was received.
func dateOf(h http.Header, received time.Time) time.Time {
	if date, ok := parseDate(strings.Trim(first(h, "Date"), " \t"), received); ok {
		return date
	}
	return received
}

// lenient are layouts of dates that are not HTTP's, and are sent for it. A fraction
// may stand behind the seconds of each.
var lenient = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04Z07:00",                                                                         // Atlassian
	"Mon, 2 Jan 2006 15:04:05 GMT", "Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 MST", // the last takes +0000 for a name
	"Mon, 2 Jan 2006 15:04:05", "2 Jan 2006 15:04:05 MST",
	"Mon, 2-Jan-2006 15:04:05 MST", // cookies
	time.UnixDate,                  // date, and Java
}

// parseDate reads an HTTP-date, or what is sent for one: without a zone, in UTC. A
// leap second is the next. date is about now.
func parseDate(text string, date time.Time) (time.Time, bool) {
	if text == "" || len(text) > maxText {
		return time.Time{}, false
	}
	if before, after, leaps := strings.Cut(text, ":59:60"); leaps {
		at, ok := parseDate(before+":59:59"+after, date)
		return at.Add(time.Second), ok
	}
	if at, err := time.ParseInLocation(time.RFC850, text, time.UTC); err == nil {
		return inCentury(at, date), inUTC(at)
	}
	if at, err := http.ParseTime(text); err == nil {
		return at, true
	}
	text = strings.ToUpper(text) // package time takes names of days and months in any case, and no others
	for _, layout := range lenient {
		if at, err := time.ParseInLocation(layout, text, time.UTC); err == nil {
			return at, inUTC(at)
		}
	}
	return time.Time{}, false
}

// inUTC says whether the offset of a date's zone is known. Package time takes that
// of a name that it does not know for none.
func inUTC(at time.Time) bool {
	name, offset := at.Zone()
	return offset != 0 || name == "UTC" || name == "GMT" || name == ""
}

// inCentury is a date whose year has two digits, in the last century in which it is
// at most 50 years ahead (RFC 9110, section 5.6.7).
func inCentury(at, date time.Time) time.Time {
	latest := date.AddDate(50, 0, 0)
	for years := (latest.Year() - at.Year() + 100) / 100 * 100; ; years -= 100 {
		if in := at.AddDate(years, 0, 0); !in.After(latest) {
			return in
		}
	}
}
