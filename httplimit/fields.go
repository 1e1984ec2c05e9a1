package httplimit

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// The fields that tell of limits, in families, by their names as net/http writes
// them: straight into the map.
var (
	tripleKeys = numberKeys{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"}
	xKeys      = numberKeys{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}
)

const (
	policyKey = "Ratelimit-Policy"
	rateKey   = "Ratelimit"
)

// numberKeys are the names of a family of three: the limit, what remains, the reset.
type numberKeys [3]string

// sets are the families that a policy chose: the index of each one's first value
// in an answer's, or none.
type sets struct{ triple, draft11, x, count int }

const (
	none = -1
	// fewest and most values that there is room for.
	fewValues, allValues = 3, 8
)

func setsOf(chosen []policy.HeaderSet) sets {
	s := sets{triple: none, draft11: none, x: none}
	if chosen == nil || slices.Contains(chosen, policy.Triple) {
		s.triple, s.count = s.count, s.count+len(tripleKeys)
	}
	if slices.Contains(chosen, policy.Draft11) {
		s.draft11, s.count = s.count, s.count+2
	}
	if slices.Contains(chosen, policy.XRateLimit) {
		s.x, s.count = s.count, s.count+len(xKeys)
	}
	return s
}

// fields are what one answer tells of its limits. A header map points into the
// values, so they are never used again for another answer.
type fields struct {
	values []string // as sets has them; "" is not sent
	// barred is how long, in seconds, nothing is left under the limit that headers
	// name; 0 if something is.
	barred int64
	now    comporta.Instant
}

// most is the largest integer of a structured field (RFC 9651, 3.3.1).
const most = 999_999_999_999_999

// work works the fields out, using buf as scratch, which it returns. It
// allocates one string, which all the values share.
func (f *fields) work(v *policy.Verdict, sets *sets, buf []byte) []byte {
	var ends [allValues]int
	buf = f.write(v, sets, buf, &ends)
	f.share(string(buf), &ends)
	return buf
}

// write appends the texts of all the values, and says where each of them ends.
func (f *fields) write(v *policy.Verdict, sets *sets, buf []byte, ends *[allValues]int) []byte {
	f.now, f.barred = v.Now, 0
	var reset time.Duration
	if v.Named >= 0 {
		a := &v.Applied[v.Named]
		reset = resetOf(v, a)
		if a.Decision.Remaining == 0 && a.Limit.Mode == policy.Enforce {
			f.barred = seconds(a.Decision.ResetAfter)
		}
		if at := sets.triple; at >= 0 {
			buf = appendNumbers(buf, ends[at:], a, seconds(reset))
		}
	}
	if at := sets.draft11; at >= 0 {
		buf = appendPolicies(buf, v)
		ends[at] = len(buf)
		buf = appendRates(buf, v)
		ends[at+1] = len(buf)
	}
	if at := sets.x; at >= 0 && v.Named >= 0 {
		epoch := int64(v.Now.Add(reset)+999_999) / 1_000_000
		buf = appendNumbers(buf, ends[at:], &v.Applied[v.Named], epoch)
	}
	return buf
}

// share gives each value its part of the text.
func (f *fields) share(text string, ends *[allValues]int) {
	start := 0
	for i := range f.values {
		if ends[i] > start {
			f.values[i] = text[start:ends[i]]
			start = ends[i]
		}
	}
}

// appendNumbers writes a family of three, and where each of them ends.
func appendNumbers(buf []byte, ends []int, a *policy.Applied, reset int64) []byte {
	for i, n := range [...]int64{a.Decision.Limit, a.Decision.Remaining, reset} {
		buf = strconv.AppendInt(buf, min(n, most), 10)
		ends[i] = len(buf)
	}
	return buf
}

// appendPolicies writes RateLimit-Policy: "name";q=100;w=60, …
func appendPolicies(buf []byte, v *policy.Verdict) []byte {
	for i, separator := 0, ""; i < len(v.Applied); i++ {
		a := &v.Applied[i]
		if !a.Shown {
			continue
		}
		buf = append(append(append(append(buf, separator...), '"'), a.Limit.Name...), `";q=`...)
		buf = strconv.AppendInt(buf, min(a.Rule.Full(), most), 10)
		if w := a.Rule.WindowAt(v.Now); w >= time.Second {
			buf = strconv.AppendInt(append(buf, ";w="...), seconds(w), 10)
		}
		separator = ", "
	}
	return buf
}

// appendRates writes RateLimit: "name";r=50;t=30, …
func appendRates(buf []byte, v *policy.Verdict) []byte {
	for i, separator := 0, ""; i < len(v.Applied); i++ {
		a := &v.Applied[i]
		if !a.Shown {
			continue
		}
		buf = append(append(append(append(buf, separator...), '"'), a.Limit.Name...), `";r=`...)
		buf = strconv.AppendInt(buf, min(a.Decision.Remaining, most), 10)
		buf = strconv.AppendInt(append(buf, ";t="...), seconds(resetOf(v, a)), 10)
		separator = ", "
	}
	return buf
}

// resetOf is the reset that is told of a limit: on a denial never after the
// Retry-After that is sent, whichever limit that is of.
func resetOf(v *policy.Verdict, a *policy.Applied) time.Duration {
	reset := a.Rule.SpreadAfter(&a.Decision)
	if retry, ok := retryOf(v); ok {
		reset = min(reset, time.Duration(retry)*time.Second)
	}
	return reset
}

// retryOf is the Retry-After of a denial in seconds, where it has one.
func retryOf(v *policy.Verdict) (int64, bool) {
	if v.Allowed || v.Refused != nil || v.RetryAfter == comporta.Never {
		return 0, false
	}
	return max(1, seconds(v.RetryAfter)), true
}

// seconds is d in whole seconds, rounded up.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// tellStore tells operators which way a verdict fell that the store had no part in.
func tellStore(h http.Header, fallen policy.OnError) {
	if fallen != policy.Default {
		h["Comporta-Store"] = []string{fallen.String()}
	}
}

// put writes the fields into a header, beside or instead of those that are there.
func (f *fields) put(h http.Header, sets *sets) {
	if at := sets.triple; at >= 0 {
		f.putNumbers(h, at, &tripleKeys)
	}
	if at := sets.draft11; at >= 0 {
		f.putLists(h, at)
	}
	if at := sets.x; at >= 0 {
		f.putNumbers(h, at, &xKeys)
	}
}

// set writes one field: a slice of the values' own array, so it costs nothing.
func (f *fields) set(h http.Header, key string, i int) { h[key] = f.values[i : i+1 : i+1] }
