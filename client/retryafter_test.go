package client

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
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
		{"Retry-After: Monday, 01-Dec-70 12:00:00 GMT", time.Date(2070, 12, 1, 12, 0, 0, 0, time.UTC).Sub(received)}, // at most 50 years ahead
		// Relative to the server's clock, not to ours.
		{"Retry-After: Tue, 01 Dec 2026 15:00:03 GMT|Date: Tue, 01 Dec 2026 15:00:00 GMT", 3 * time.Second},
		{"Retry-After: Tue, 01 Dec 2020 15:00:03 GMT|Date: Tue, 01 Dec 2020 15:00:00 GMT", 3 * time.Second},
		{"Retry-After: Tue, 01 Dec 2026 12:00:03 GMT|Date: yesterday", 3 * time.Second},
		// Illegal, and meant so: a fraction, other dates, instants.
		{"Retry-After: 1.5", 2 * time.Second},
		{"Retry-After: 2.0", 2 * time.Second},
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
		// Without overflow.
		{"Retry-After: 9223372036", comporta.Never}, // or as good as
		{"Retry-After: 9000000000", 9_000_000_000 * time.Second},
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

func FuzzRetryAfter(f *testing.F) {
	f.Add("2", "Tue, 01 Dec 2026 12:00:00 GMT", "250")
	f.Add("Sunday, 06-Nov-94 08:49:37 GMT", "", "1.5")
	f.Add("2, 3", "x", "99999999999999999999")
	f.Add("1796126405", "", "")
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
