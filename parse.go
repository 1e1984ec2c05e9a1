package comporta

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseLimit reads a limit as people write it:
//
//	limit    = count "/" period [ " burst " count ]  |  "unlimited"
//	count    = digits, with "_" between them if one likes: 10_000
//	period   = s | sec | second | min | minute | h | hour | a duration: 500ms, 10s, 2m30s, 24h, 7d, 4w
//
// The algorithm is not part of it. It checks the writing and the ranges of
// single numbers; [Limit.Compile] checks the whole. The error is a *LimitError.
func ParseLimit(text string) (Limit, error) {
	text = strings.TrimSpace(text)
	if text == "unlimited" {
		return Limit{Unlimited: true}, nil
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return Limit{}, wrong("limit", `is empty: write it like "100/min" or "100/min burst 20"`)
	}
	if len(words) != 1 && (len(words) != 3 || words[1] != "burst") {
		return Limit{}, wrong("limit", `%q is not understood: write it like "100/min" or "100/min burst 20"`, text)
	}
	count, period, found := strings.Cut(words[0], "/")
	if !found {
		return Limit{}, wrong("limit", `%q has no period: write it like "100/min"`, text)
	}
	var l Limit
	var err error
	if l.Limit, err = parseCount("limit", count); err != nil {
		return Limit{}, err
	}
	if l.Window, err = parsePeriod(count, period); err != nil {
		return Limit{}, err
	}
	if len(words) == 3 {
		if l.Burst, err = parseCount("burst", words[2]); err != nil {
			return Limit{}, err
		}
		if l.Burst == 0 {
			return Limit{}, wrong("burst", "a burst of 0 would deny all: write at least 1, or leave it out for the limit itself")
		}
		if l.Limit == 0 {
			return Limit{}, wrong("burst", "a limit of 0 denies all and takes no burst")
		}
	}
	return l, nil
}

// ParseQuota reads count "/" ( day | week | month | year ), or "unlimited". Its
// calendar is in UTC, for the caller to change; its algorithm is the fixed window.
func ParseQuota(text string) (Limit, error) {
	text = strings.TrimSpace(text)
	if text == "unlimited" {
		return Limit{Unlimited: true, Algorithm: FixedWindow}, nil
	}
	count, name, found := strings.Cut(text, "/")
	if !found {
		return Limit{}, wrong("quota", `%q has no period: write it like "1000/month"`, text)
	}
	n, err := parseCount("quota", count)
	if err != nil {
		return Limit{}, err
	}
	for p := Day; p <= Year; p++ {
		if p.String() == name {
			return Limit{Algorithm: FixedWindow, Limit: n, Calendar: &Calendar{Period: p}}, nil
		}
	}
	if strings.Contains(name, " burst ") {
		return Limit{}, wrong("quota", "%q: a quota takes no burst", text)
	}
	if _, err := parsePeriod(count, name); err == nil {
		return Limit{}, wrong("quota", "%q is no calendar period: use day, week, month or year, or write `limit: %s`", name, text)
	}
	return Limit{}, wrong("quota", "unknown period %q: use day, week, month or year", name)
}

// parseCount reads digits with "_" between them.
func parseCount(field, text string) (int64, error) {
	ok := text != ""
	for i := range len(text) {
		digit := text[i] >= '0' && text[i] <= '9'
		between := text[i] == '_' && i > 0 && i < len(text)-1 && text[i-1] != '_'
		ok = ok && (digit || between)
	}
	if !ok {
		return 0, wrong(field, `%q is not a whole number: write digits, with "_" between them if you like`, text)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil || n > MaxUnits {
		return 0, wrong(field, "%s is too large: at most 1_000_000_000_000 (10^12)", text)
	}
	return n, nil
}

// named are the periods with a name of their own, the shortest first: it is how they print.
var named = [...]struct {
	name string
	us   int64
}{
	{"s", 1e6}, {"sec", 1e6}, {"second", 1e6},
	{"min", 60e6}, {"minute", 60e6},
	{"h", 3600e6}, {"hour", 3600e6},
}

// units are what a duration is written in, the largest first.
var units = [...]struct {
	name string
	us   int64
}{
	{"w", 7 * 86400e6}, {"d", 86400e6}, {"h", 3600e6}, {"m", 60e6}, {"s", 1e6}, {"ms", 1e3}, {"us", 1},
}

// parsePeriod reads the period of a limit of that count.
func parsePeriod(count, text string) (time.Duration, error) {
	for _, n := range named {
		if text == n.name {
			return micros(n.us), nil
		}
	}
	switch text {
	case "day", "d":
		return 0, wrong("limit", "a day is a calendar period: write %s/24h, or `quota: %s/day`", count, count)
	case "week", "month", "year":
		return 0, wrong("limit", "a %s is a calendar period: write `quota: %s/%s`, or a duration such as %s/%s",
			text, count, text, count, map[string]string{"week": "7d", "month": "30d", "year": "365d"}[text])
	case "m":
		return 0, wrong("limit", "m alone could be a minute or a month: write %s/min, or `quota: %s/month`", count, count)
	case "":
		return 0, wrong("limit", "the period is missing: write it like %s/min", count)
	}
	d, err := ParseDuration(text)
	if err != nil {
		return 0, wrong("limit", "period %v; or use s, min or h", err.(*LimitError).Problem)
	}
	if err := checkDuration("limit", "a window", d, MinWindow); err != nil {
		return 0, err
	}
	return d, nil
}

// ParseDuration reads a duration as limits have it: whole numbers, each with a
// unit w, d, h, m, s, ms or us, from the largest unit to the smallest: 2m30s, 7d.
func ParseDuration(text string) (time.Duration, error) {
	rest, total, last := text, int64(0), -1
	for rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		letters := len(rest[digits:]) - len(strings.TrimLeft(rest[digits:], "abcdefghijklmnopqrstuvwxyz"))
		number, name := rest[:digits], rest[digits:digits+letters]
		if digits == 0 || letters == 0 {
			return 0, wrong("duration", `%q is not a duration: write whole numbers with units, like 500ms, 10s, 2m30s, 24h, 7d`, text)
		}
		unit := -1
		for i, u := range units {
			if u.name == name {
				unit = i
			}
		}
		if unit < 0 {
			return 0, wrong("duration", "%q has an unknown unit %q: use w, d, h, m, s or ms", text, name)
		}
		if unit <= last {
			return 0, wrong("duration", "%q is out of order: write the largest unit first, each once", text)
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > (math.MaxInt64/1000-total)/units[unit].us {
			return 0, wrong("duration", "%q is too long: no limit takes more than 400 days", text)
		}
		total += n * units[unit].us
		last, rest = unit, rest[digits+letters:]
	}
	if last < 0 {
		return 0, wrong("duration", "is empty: write it like 10s")
	}
	return micros(total), nil
}

// String prints the limit canonically, as ParseLimit or ParseQuota reads it: a
// whole unit by its name, else the largest units first, hours at most; no "_";
// no burst equal to the limit. Algorithm, max_wait and charge are not part of it.
func (l Limit) String() string {
	if l.Unlimited {
		return "unlimited"
	}
	out := strconv.FormatInt(l.Limit, 10) + "/"
	if l.Calendar != nil {
		return out + l.Calendar.Period.String()
	}
	out += printPeriod(int64(l.Window / time.Microsecond))
	if l.Burst != 0 && l.Burst != l.Limit {
		out += " burst " + strconv.FormatInt(l.Burst, 10)
	}
	return out
}

func printPeriod(us int64) string {
	for _, n := range named {
		if us == n.us {
			return n.name
		}
	}
	return FormatDuration(micros(us))
}

// FormatDuration prints a duration as ParseDuration reads it, the largest units
// first: 1m30s, 24h. Days and weeks print as hours, since not every day has 24.
func FormatDuration(d time.Duration) string {
	us := int64(d / time.Microsecond)
	if us <= 0 {
		return "0s"
	}
	var b strings.Builder
	for _, u := range units[2:] {
		if n := us / u.us; n > 0 {
			b.WriteString(strconv.FormatInt(n, 10))
			b.WriteString(u.name)
			us -= n * u.us
		}
	}
	return b.String()
}
