package httplimit

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// The fields that tell of limits, a family after the other.
const (
	limitField = iota
	remainingField
	resetField

	policyField
	rateField

	xLimitField
	xRemainingField
	xResetField

	fieldCount
)

// keys are the fields' names as net/http writes them: straight into the map.
var keys = [fieldCount]string{
	"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
	"Ratelimit-Policy", "Ratelimit",
	"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
}

// sets are the families that a policy chose.
type sets struct{ triple, draft11, x bool }

func setsOf(chosen []policy.HeaderSet) sets {
	return sets{
		triple:  chosen == nil || slices.Contains(chosen, policy.Triple),
		draft11: slices.Contains(chosen, policy.Draft11),
		x:       slices.Contains(chosen, policy.XRateLimit),
	}
}

// fields are what one answer tells of its limits. A header map points into the
// values, so they are never used again for another answer.
type fields struct {
	values [fieldCount]string // "" is not sent
	// barred is how long, in seconds, nothing is left under the limit that headers
	// name; 0 if something is.
	barred int64
	now    comporta.Instant
}

// most is the largest integer of a structured field (RFC 9651, 3.3.1).
const most = 999_999_999_999_999

// work works the fields out, using buf as scratch, which it returns. It
// allocates one string, which all the values share.
func (f *fields) work(v *policy.Verdict, sets sets, buf []byte) []byte {
	if v.Failed != nil {
		return buf // nobody knows the numbers
	}
	f.now = v.Now
	var ends [fieldCount]int
	if v.Named >= 0 {
		a := &v.Applied[v.Named]
		reset := resetOf(v, a)
		if a.Decision.Remaining == 0 && a.Limit.Mode == policy.Enforce {
			f.barred = seconds(a.Decision.ResetAfter)
		}
		if sets.triple {
			buf = appendEnding(buf, &ends[limitField], a.Decision.Limit)
			buf = appendEnding(buf, &ends[remainingField], a.Decision.Remaining)
			buf = appendEnding(buf, &ends[resetField], seconds(reset))
		}
		if sets.x {
			buf = appendEnding(buf, &ends[xLimitField], a.Decision.Limit)
			buf = appendEnding(buf, &ends[xRemainingField], a.Decision.Remaining)
			buf = appendEnding(buf, &ends[xResetField], int64(v.Now.Add(reset)+999_999)/1_000_000)
		}
	}
	if sets.draft11 {
		buf = appendPolicies(buf, v)
		ends[policyField] = len(buf)
		buf = appendRates(buf, v)
		ends[rateField] = len(buf)
	}
	text, start := string(buf), 0
	for _, i := range [...]int{limitField, remainingField, resetField, xLimitField, xRemainingField, xResetField, policyField, rateField} {
		if ends[i] > 0 {
			f.values[i] = text[start:ends[i]]
			start = ends[i]
		}
	}
	return buf
}

func appendEnding(buf []byte, end *int, n int64) []byte {
	buf = strconv.AppendInt(buf, min(n, most), 10)
	*end = len(buf)
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

// retryOf is the Retry-After of a refusal in seconds, where it has one.
func retryOf(v *policy.Verdict) (int64, bool) {
	if v.Allowed || v.RetryAfter == comporta.Never {
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

// put writes the fields into a header, beside or instead of those that are there.
func (f *fields) put(h http.Header) {
	f.putNumbers(h, limitField)
	f.putLists(h)
	f.putNumbers(h, xLimitField)
}

// set writes one field: a slice of the values' own array, so it costs nothing.
func (f *fields) set(h http.Header, i int) { h[keys[i]] = f.values[i : i+1 : i+1] }
