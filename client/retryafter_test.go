package client

import (
	"math"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"pgregory.net/rapid"
)

var received = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func respond(fields ...string) *http.Response {
	h := http.Header{}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ":")
		h.Add(name, value)
	}
	return &http.Response{StatusCode: 429, Header: h}
}

const untold = -1 * time.Second

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		fields string // lines, separated by |
		want   time.Duration
	}{
		// As RFC 9110 has it.
		{"Retry-After: 2", 2 * time.Second},
		{"Retry-After: 0", 0},
		{"Retry-After: 60", time.Minute},
		{"Retry-After: 600", 10 * time.Minute},
		{"Retry-After:  2 ", 2 * time.Second},
		{"Retry-After: 007", 7 * time.Second},
		{"Retry-After: Tue, 01 Dec 2026 12:00:03 GMT", 3 * time.Second},
		{"Retry-After: Tuesday, 01-Dec-26 12:00:03 GMT", 3 * time.Second},
		{"Retry-After: Tue Dec  1 12:00:03 2026", 3 * time.Second},
		{"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT", 0},
		{"Retry-After: Sunday, 06-Nov-94 08:49:37 GMT", 0},
		{"Retry-After: Tuesday, 01-Dec-76 12:00:00 GMT", time.Date(2076, 12, 1, 12, 0, 0, 0, time.UTC).Sub(received)},
		{"Retry-After: Wednesday, 02-Dec-76 12:00:00 GMT", 0}, // more than 50 years ahead: 1976
		{"Retry-After: Tuesday, 01-Dec-26 12:00:03 PST", untold},
		{"Retry-After: Monday, 01-Dec-70 12:00:00 GMT", time.Date(2070, 12, 1, 12, 0, 0, 0, time.UTC).Sub(received)}, // at most 50 years ahead
		// Relative to the server's clock, not to ours.
		{"Retry-After: Tue, 01 Dec 2026 15:00:03 GMT|Date: Tue, 01 Dec 2026 15:00:00 GMT", 3 * time.Second},
		{"Retry-After: Tue, 01 Dec 2020 15:00:03 GMT|Date: Tue, 01 Dec 2020 15:00:00 GMT", 3 * time.Second},
		{"Retry-After: Tue, 01 Dec 2026 12:00:03 GMT|Date: yesterday", 3 * time.Second},
		{"Retry-After: Friday, 01-Jan-99 00:00:03 GMT|Date: Friday, 01-Jan-99 00:00:00 GMT", 3 * time.Second},
		{"Retry-After: 2026-12-01T12:00:03Z|Date: Tue, 1 Dec 2026 12:00:01 UTC", 2 * time.Second},
		// Illegal, and meant so: a fraction, other dates, instants.
		{"Retry-After: 1.5", 2 * time.Second},
		{"Retry-After: 2.0", 2 * time.Second},
		{"Retry-After: 2.00000000000000000001", 3 * time.Second},
		{"Retry-After: 0.0", 0},
		{"Retry-After: 0.9999999999999", time.Second},
		{"Retry-After: Tue, 01 Dec 2026 12:00:03 +0000", 3 * time.Second},
		{"Retry-After: Tue, 1 Dec 2026 12:00:03 +0000", 3 * time.Second},
		{"Retry-After: Tue, 1 Dec 2026 12:00:03 UTC", 3 * time.Second},
		{"Retry-After: Tuesday, 01-Dec-26 12:00:03 UTC", 3 * time.Second},
		{"Retry-After: 2026-12-01T12:00:03+0000", 3 * time.Second},
		{"Retry-After: 2026-12-01T12:00:03", 3 * time.Second},
		{"Retry-After: 2026-12-01T12:00:02.5Z", 2500 * time.Millisecond},
		{"Retry-After: 2026-12-01T12:00:03Z", 3 * time.Second},
		{"Retry-After: 2026-12-01T14:00:03+02:00", 3 * time.Second},
		{"Retry-After: 2026-12-01T12:00:03.000Z", 3 * time.Second},
		{"Retry-After: 2026-12-01 12:00:03", 3 * time.Second},
		{"Retry-After: Tue, 01 Dec 2026 12:00:03 UTC", 3 * time.Second},
		{"Retry-After: Tue, 01 Dec 2026 14:00:03 +0200", 3 * time.Second},
		{"Retry-After: Tue, 1 Dec 2026 12:00:03 GMT", 3 * time.Second},
		{"Retry-After: 1796126405", 5 * time.Second},
		{"Retry-After: 1796126405000", 5 * time.Second},
		{"Retry-After: 1796126390", 0}, // ten seconds ago
		// Illegal, and not to be guessed.
		{"Retry-After: -5", untold},
		{"Retry-After: -1", untold},
		{"Retry-After:", untold},
		{"Retry-After: abc", untold},
		{"Retry-After: 2 3", untold},
		{"Retry-After: +5", untold},
		{"Retry-After: 1e3", untold},
		{"Retry-After: 0x10", untold},
		{"Retry-After: NaN", untold},
		{"Retry-After: Inf", untold},
		{"Retry-After: 5s", untold},
		{"Retry-After: 1.", untold},
		{"Retry-After: .5", untold},
		{"Retry-After: ٣", untold},
		{"Retry-After: Tue, 01 Dec 2026 12:00:03 XYZ", untold},
		{"Retry-After: " + strings.Repeat("x", 1000), untold},
		{"X-Other: 1", untold},
		// Several: the longest.
		{"Retry-After: 2|Retry-After: 3", 3 * time.Second},
		{"Retry-After: 3|Retry-After: 2", 3 * time.Second},
		{"Retry-After: abc|Retry-After: 2", 2 * time.Second},
		{"Retry-After: 2, 3", 3 * time.Second},
		{"Retry-After: 2, x", 2 * time.Second},
		{"Retry-After: -5, -6", untold},
		{"Retry-After: Tue, 01 Dec 2026 12:00:30 GMT, 5", 30 * time.Second},
		{"Retry-After: 5, Tue, 01 Dec 2026 12:00:30 GMT", 30 * time.Second},
		{"Retry-After: Tue, 01 Dec 2026 12:00:03 GMT, Tue, 01 Dec 2026 12:00:04 GMT", 4 * time.Second},
		{"Retry-After: 2, 3,", 3 * time.Second},
		{"Retry-After: Tue, 01 Dec 2026 12:00:03 GMT|Retry-After: 2", 3 * time.Second},
		// Without overflow.
		{"Retry-After: 9223372036", comporta.Never}, // or as good as
		{"Retry-After: 9000000000", 9_000_000_000 * time.Second},
		{"Retry-After: 9000000001", 9_000_000_001 * time.Second}, // no float of nanoseconds is that exact
		{"Retry-After: " + strings.Repeat("0", 400) + "7", 7 * time.Second},
		{"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", comporta.Never},
		{"Retry-After: 9223372036854775807", comporta.Never},
		{"Retry-After: 9223372036854775807.5", comporta.Never},
		{"Retry-After: 9223372036854775808.9", comporta.Never},
		{"Retry-After: 1827662400", 1827662400*time.Second - 1796126400*time.Second},     // 365 days from now
		{"Retry-After: 1827748801", 1827748801 * time.Second},                            // 366 days and a second
		{"Retry-After: 1796040000", 0},                                                   // a day ago
		{"Retry-After: 1796039999", 1796039999 * time.Second},                            // and a second
		{"Retry-After: 1700000005|Date: Tue, 14 Nov 2023 22:13:20 GMT", 5 * time.Second}, // by the server's clock
		{"Retry-After: 9223372037", comporta.Never},
		{"Retry-After: 99999999999999999999", comporta.Never},
		{"Retry-After: " + strings.Repeat("9", 400), comporta.Never},
		{"Retry-After: 1000000000", 1_000_000_000 * time.Second}, // no instant of these days
		// The kin.
		{"Retry-After-Ms: 250", 250 * time.Millisecond},
		{"Retry-After: 1|Retry-After-Ms: 250", 250 * time.Millisecond},
		{"Retry-After: 5|Retry-After-Ms: 250", 5 * time.Second}, // not the same time: the longer
		{"Retry-After: 1|Retry-After-Ms: 2500.5", 2500500 * time.Microsecond},
		{"Retry-After: 1|Retry-After-Ms: -1", time.Second},
		{"Retry-After-Ms: 99999999999999999999", comporta.Never},
		{"X-Retry-In: 1.5s", 1500 * time.Millisecond},
		{"X-Retry-In: -1s", untold},
		{"Retry-After: 2|X-Retry-In: 1.5s", 1500 * time.Millisecond},
		{"Retry-After: 5|Retry-After-Ms: 4900|X-Retry-In: 4.2s", 4900 * time.Millisecond}, // not less and less
		{"Retry-After: 5|Retry-After-Ms: 4200|Retry-After-Ms: 4900", 4900 * time.Millisecond},
		{"Retry-After: 1|Retry-After-Ms: 250, 300", 300 * time.Millisecond},
		{"Retry-After: 1|Retry-After-Ms: 0", time.Second}, // a whole second less is another time
		{"Retry-After: 0|Retry-After-Ms: 250", 250 * time.Millisecond},
		{"X-Retry-In: 1h2m3.5s", 3723500 * time.Millisecond},
		{"X-Retry-In: 5", untold},
		{"Retry-After-Ms: 0.0000001", time.Microsecond},
		{"Retry-After-Ms: 0.99999999999", time.Millisecond},
		{"X-RateLimit-Retry-After: 7", 7 * time.Second},
		{"X-RateLimit-Retry-After: 1796126405", 5 * time.Second},
		{"X-Ms-Retry-After-Ms: 40", 40 * time.Millisecond},
	} {
		got, told := RetryAfter(respond(strings.Split(c.fields, "|")...), received)
		if !told {
			got = untold
		}
		if got != c.want {
			t.Errorf("%.80s: %v, want %v", c.fields, got, c.want)
		}
	}
}

func TestRetryAfterUnderAnySpelling(t *testing.T) {
	resp := &http.Response{Header: http.Header{"retry-after": {"7"}}}
	if d, told := RetryAfter(resp, received); d != 7*time.Second || !told {
		t.Error(d, told)
	}
}

// What a legal Retry-After tells is a lower bound, whatever stands beside it; only
// one of its kin that tells the same second more finely may take its place.
func TestRetryAfterIsNeverShortened(t *testing.T) {
	dates := []string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}
	rapid.Check(t, func(t *rapid.T) {
		date := received.Add(time.Duration(rapid.Int64Range(-1e9, 1e9).Draw(t, "skew")) * time.Second)
		h := http.Header{"Date": {date.Format(http.TimeFormat)}}
		most := new(big.Int)
		for range rapid.IntRange(1, 4).Draw(t, "lines") {
			var line string
			if rapid.Bool().Draw(t, "a date") {
				n := rapid.Int64Range(-1e6, 1e9).Draw(t, "ahead")
				line = date.Add(time.Duration(n) * time.Second).Format(rapid.SampledFrom(dates).Draw(t, "form"))
				if told := big.NewInt(n); told.Cmp(most) > 0 {
					most = told
				}
			} else {
				// Those from 1e9 on may be instants by mistake, if they are of about now.
				line = rapid.StringMatching(`[0-9]{1,9}|[3-9][0-9]{9,30}`).Draw(t, "seconds")
				if told, _ := new(big.Int).SetString(line, 10); told.Cmp(most) > 0 && !millisOfNow(told, date) {
					most = told
				}
			}
			h.Add("Retry-After", rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "space")+line)
		}
		if rapid.Bool().Draw(t, "on one line") {
			h["Retry-After"] = []string{strings.Join(h["Retry-After"], ", ")}
		}
		fine := rapid.Bool().Draw(t, "kin")
		if fine {
			h.Set("Retry-After-Ms", rapid.StringMatching(`[0-9]{1,12}(\.[0-9]{1,3})?|-1|x`).Draw(t, "ms"))
			h.Set("X-Retry-In", rapid.StringMatching(`[0-9]{1,9}(\.[0-9]{1,3})?s|-1s|x`).Draw(t, "in"))
		}
		got, told := RetryAfter(&http.Response{Header: h}, received)
		least := new(big.Int).Mul(most, big.NewInt(int64(time.Second)))
		if longest := big.NewInt(int64(comporta.Never)); least.Cmp(longest) > 0 {
			least = longest
		}
		if fine {
			least.Sub(least, big.NewInt(int64(time.Second)-1))
		}
		if !told || big.NewInt(int64(got)).Cmp(least) < 0 {
			t.Fatalf("%v: %v, %v; at least %v ns", h, got, told, least)
		}
	})
}

// millisOfNow says whether a number may be milliseconds since 1970, of about now.
func millisOfNow(n *big.Int, date time.Time) bool {
	if !n.IsInt64() {
		return false
	}
	d := time.UnixMilli(n.Int64()).Sub(date)
	return d > -25*time.Hour && d < 367*24*time.Hour
}

// However long a field is, little of it is read.
func TestRetryAfterIsBounded(t *testing.T) {
	allocations := testing.AllocsPerRun(1, func() {
		for _, line := range []string{strings.Repeat("x, ", 1e6), strings.Repeat("Tue, ", 1e6), strings.Repeat("1h", 1e6)} {
			for _, k := range kin {
				if wait, told := RetryAfter(&http.Response{Header: http.Header{k.field: slices.Repeat([]string{line}, 2)}}, received); told {
					t.Error(wait)
				}
			}
		}
	})
	if allocations > 100_000 {
		t.Errorf("%v allocations", allocations)
	}
	lines := append(slices.Repeat([]string{"x"}, maxHints), "7")
	if wait, told := RetryAfter(&http.Response{Header: http.Header{"Retry-After": lines}}, received); told {
		t.Error(wait)
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("2", "Tue, 01 Dec 2026 12:00:00 GMT", "250")
	f.Add("Sunday, 06-Nov-94 08:49:37 GMT", "", "1.5")
	f.Add("2, 3", "x", "99999999999999999999")
	f.Add("1796126405", "", "")
	f.Add("1796126405000", "Friday, 01-Jan-99 00:00:03 GMT", "250, 300")
	f.Add("5, Tue, 01 Dec 2026 12:00:30 GMT", "Tue, 1 Dec 2026 12:00:00 +0000", "0.0000000001")
	f.Add("9223372036.854775808", "0001-01-01T00:00:00Z", "9223372036854")
	f.Fuzz(func(t *testing.T, after, date, ms string) {
		resp := &http.Response{Header: http.Header{"Retry-After": {after}, "Date": {date}, "Retry-After-Ms": {ms}}}
		d, told := RetryAfter(resp, received)
		if d < 0 || !told && d != 0 {
			t.Fatalf("%v, %v", d, told)
		}
		// What is legal is never shortened.
		if after != "" && len(after) < 9 && digits(after) && ms == "" {
			n := time.Duration(0)
			for _, c := range after {
				n = n*10 + time.Duration(c-'0')
			}
			if d != n*time.Second {
				t.Fatalf("%q is %v", after, d)
			}
		}
		if d == math.MaxInt64 && d != comporta.Never {
			t.Fatal(d)
		}
	})
}
