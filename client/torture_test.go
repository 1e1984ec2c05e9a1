package client

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// inThree is three seconds after bubbles begin, in the bubbles' own year.
var inThree = time.Date(2000, 1, 1, 0, 0, 3, 0, time.UTC)

// What servers send as Retry-After, and real clients stumble over: the second
// attempt comes when it was told, never earlier; where nothing was told that can
// be understood, after the backoff, which is never nothing.
func TestRetryAfterValues(t *testing.T) {
	const backoff = 500 * time.Millisecond
	for _, c := range []struct {
		name string
		says func(http.Header)
		gap  time.Duration // 0: there is no second attempt
		told time.Duration // then
	}{
		{"seconds", retryIn("2"), 2 * time.Second, 0},
		{"zero", retryIn("0"), backoff, 0},
		{"a fraction", retryIn("1.5"), 2 * time.Second, 0},
		{"a fraction, to the full second", retryIn("2.0"), 2 * time.Second, 0},
		{"negative", retryIn("-1"), backoff, 0},
		{"more negative", retryIn("-5"), backoff, 0},
		{"a plus sign", retryIn("+5"), backoff, 0},
		{"words", retryIn("abc"), backoff, 0},
		{"empty", retryIn(""), backoff, 0},
		{"spaces around", retryIn(" 2 "), 2 * time.Second, 0},
		{"two numbers", retryIn("2 3"), backoff, 0},
		{"hexadecimal", retryIn("0x10"), backoff, 0},
		{"an exponent", retryIn("1e3"), backoff, 0},
		{"other digits", retryIn("٣"), backoff, 0},
		{"not a number", retryIn("NaN"), backoff, 0},
		{"infinite", retryIn("Infinity"), backoff, 0},
		{"an IMF date", retryIn(inThree.Format(http.TimeFormat)), 3 * time.Second, 0},
		{"an RFC 850 date", retryIn(inThree.Format("Monday, 02-Jan-06 15:04:05 GMT")), 3 * time.Second, 0},
		{"an asctime date", retryIn(inThree.Format(time.ANSIC)), 3 * time.Second, 0},
		{"a past date", retryIn("Fri, 31 Dec 1999 23:59:00 GMT"), backoff, 0},
		{"an ISO 8601 date", retryIn(inThree.Format(time.RFC3339)), 3 * time.Second, 0},
		{"a date by a clock that is ahead", func(h http.Header) {
			h.Set("Date", inThree.Add(time.Hour).Format(http.TimeFormat))
			h.Set("Retry-After", inThree.Add(time.Hour+4*time.Second).Format(http.TimeFormat))
		}, 4 * time.Second, 0},
		{"two lines", func(h http.Header) { h["Retry-After"] = []string{"2", "3"} }, 3 * time.Second, 0},
		{"two lines, the longer first", func(h http.Header) { h["Retry-After"] = []string{"3", "2"} }, 3 * time.Second, 0},
		{"two lines, one broken", func(h http.Header) { h["Retry-After"] = []string{"soon", "3"} }, 3 * time.Second, 0},
		{"two lines joined", retryIn("2, 3"), 3 * time.Second, 0},
		{"milliseconds", func(h http.Header) { h.Set("Retry-After-Ms", "1250") }, 1250 * time.Millisecond, 0},
		{"milliseconds beside the full second", func(h http.Header) {
			h.Set("Retry-After", "2")
			h.Set("Retry-After-Ms", "1250")
		}, 1250 * time.Millisecond, 0},
		{"milliseconds that contradict", func(h http.Header) {
			h.Set("Retry-After", "20")
			h.Set("Retry-After-Ms", "100")
		}, 20 * time.Second, 0},
		{"an instant by mistake", retryIn(strconv.FormatInt(inThree.Unix(), 10)), 0, 946684803 * time.Second}, // 2000 is before such instants
		{"from a cache", func(h http.Header) {
			h.Set("Age", "100")
			h.Set("Retry-After", "2")
		}, 2 * time.Second, 0},

		{"as long as may be", retryIn("60"), time.Minute, 0},
		{"longer", retryIn("61"), 0, 61 * time.Second},
		{"much longer", retryIn("600"), 0, 10 * time.Minute},
		{"past what a timer of 32 bits holds", retryIn("2147484"), 0, 2147484 * time.Second},
		{"past 64 bits of nanoseconds", retryIn("9223372037"), 0, comporta.Never},
		{"past 64 bits", retryIn("99999999999999999999"), 0, comporta.Never},
		{"past a float", retryIn(strings.Repeat("9", 400)), 0, comporta.Never},
		{"a far date", retryIn("Fri, 31 Dec 9999 23:59:59 GMT"), 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, tell(1, c.says), func(s *rig) {
				h, _ := s.client(steady())
				resp, body := s.get(h, "http://api.test/")
				if c.gap > 0 {
					s.want(0, c.gap)
					if resp.StatusCode != 200 || GaveUp(resp) != nil {
						t.Error(resp.StatusCode, GaveUp(resp))
					}
					return
				}
				s.want(0)
				why := GaveUp(resp)
				if body != "slow down" || why == nil || why.Reason != ReasonTooLong || c.told != 0 && why.RetryAfter != c.told {
					t.Errorf("%d %q, %v; want the refusal at once, and to wait %v", resp.StatusCode, body, why, c.told)
				}
			})
		})
	}
}

// The same with chance: never earlier than told, and not much later.
func TestRetryAfterWithJitter(t *testing.T) {
	for jitter := Full; jitter <= NoJitter; jitter++ {
		for _, random := range []float64{0, 0.5, 0.999999} {
			inBubble(t, tell(2, retryIn("2")), func(s *rig) {
				h, _ := s.client(Options{Backoff: Backoff{Jitter: jitter}, Random: func() float64 { return random }})
				s.get(h, "http://api.test/")
				came := s.arrivals()
				if len(came) != 3 || came[1] < 2*time.Second || came[2]-came[1] < 2*time.Second || came[2] > 6*time.Second {
					t.Errorf("jitter %d: requests came at %v", jitter, came)
				}
			})
		}
	}
}

// A refusal's own backoff is never nothing, whatever chance says.
func TestNoHotLoop(t *testing.T) {
	for _, value := range []string{"0", "abc", "-1", ""} {
		inBubble(t, tell(2, retryIn(value)), func(s *rig) {
			h, _ := s.client(Options{Random: func() float64 { return 0 }})
			s.get(h, "http://api.test/")
			came := s.arrivals()
			if came[1] < 10*time.Millisecond || came[2]-came[1] < 10*time.Millisecond {
				t.Errorf("Retry-After %q: requests came at %v", value, came)
			}
		})
	}
}

// The sequence of waits where nothing was told, with a seeded source: that of the
// articles' formulas.
func TestBackoffSequence(t *testing.T) {
	draws := []float64{0.5, 0.25, 0.75, 0.9, 0.1}
	ms := func(n ...float64) (waits []time.Duration) {
		for _, n := range n {
			waits = append(waits, time.Duration(n*1e6))
		}
		return waits
	}
	for _, c := range []struct {
		jitter Jitter
		waits  []time.Duration
	}{
		// base 500 ms, cap 3 s: v = 500, 1000, 2000, 3000, 3000
		{Full, ms(250, 250, 1500, 2700, 300)},
		{Equal, ms(375, 625, 1750, 2850, 1650)},
		{Decorrelated, ms(1000, 1125, 2656.25, 3000, 1350)},
		{Additive, ms(525, 1025, 2150, 3270, 3030)},
		{NoJitter, ms(500, 1000, 2000, 3000, 3000)},
	} {
		inBubble(t, func(n int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, func(s *rig) {
			drawn := 0
			h, _ := s.client(Options{
				Attempts: 6, Backoff: Backoff{Cap: 3 * time.Second, Jitter: c.jitter},
				Random: func() float64 { drawn++; return draws[(drawn-1)%len(draws)] },
			})
			s.get(h, "http://api.test/")
			at := []time.Duration{0}
			for _, wait := range c.waits {
				at = append(at, at[len(at)-1]+wait)
			}
			s.want(at...)
		})
	}
}

// What is tried again, by status and by method (RFC 9110, section 9.2.2): a server
// that refused has not acted, one that failed may have.
func TestStatusesAndMethods(t *testing.T) {
	plain := func(http.Header) {}
	for _, c := range []struct {
		status           int
		says             func(http.Header)
		get, post, keyed int // attempts
		refused          int // of POST, with RetryRefused
		why              Reason
	}{
		{200, plain, 1, 1, 1, 1, ""},
		{404, plain, 1, 1, 1, 1, ""},
		{408, plain, 3, 1, 3, 1, ReasonAttempts},
		{409, plain, 1, 1, 1, 1, ""},
		{409, func(h http.Header) { h.Set("X-Should-Retry", "true") }, 3, 1, 3, 3, ReasonAttempts},
		{413, plain, 1, 1, 1, 1, ""},
		{413, retryIn("1"), 3, 1, 3, 1, ReasonAttempts},
		{425, plain, 3, 1, 3, 1, ReasonAttempts},
		{429, plain, 3, 1, 3, 3, ReasonAttempts},
		{429, retryIn("1"), 3, 1, 3, 3, ReasonAttempts},
		{429, func(h http.Header) { h.Set("X-Should-Retry", "false") }, 1, 1, 1, 1, ReasonForbidden},
		{403, plain, 1, 1, 1, 1, ""},
		{403, retryIn("1"), 3, 1, 3, 3, ReasonAttempts},
		{500, plain, 3, 1, 3, 1, ReasonAttempts},
		{500, func(h http.Header) { h.Set("Stripe-Should-Retry", "false") }, 1, 1, 1, 1, ReasonForbidden},
		{501, plain, 1, 1, 1, 1, ReasonFinal},
		{501, retryIn("1"), 1, 1, 1, 1, ReasonFinal},
		{501, func(h http.Header) { h.Set("X-Should-Retry", "true") }, 1, 1, 1, 1, ReasonFinal},
		{507, plain, 1, 1, 1, 1, ReasonFinal},
		{507, func(h http.Header) { h.Set("X-Should-Retry", "true") }, 3, 1, 3, 3, ReasonAttempts},
		{502, plain, 3, 1, 3, 1, ReasonAttempts},
		{503, plain, 3, 1, 3, 1, ReasonAttempts},
		{503, retryIn("1"), 3, 1, 3, 1, ReasonAttempts},
		{504, plain, 3, 1, 3, 1, ReasonAttempts},
		{529, plain, 3, 1, 3, 1, ReasonAttempts},
	} {
		for _, m := range []struct {
			method, key string
			refused     bool
			attempts    int
		}{
			{"GET", "", false, c.get}, {"HEAD", "", false, c.get}, {"OPTIONS", "", false, c.get}, {"TRACE", "", false, c.get},
			{"PUT", "", false, c.get}, {"DELETE", "", false, c.get}, {"QUERY", "", false, c.get},
			{"POST", "", false, c.post}, {"PATCH", "", false, c.post}, {"PROPFIND", "", false, c.post},
			{"POST", "Idempotency-Key", false, c.keyed}, {"PATCH", "X-Idempotency-Key", false, c.keyed},
			{"POST", "", true, c.refused}, {"PATCH", "", true, c.refused},
		} {
			inBubble(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				c.says(w.Header())
				w.WriteHeader(c.status)
			}, func(s *rig) {
				o := steady()
				o.RetryRefused = m.refused
				h, _ := s.client(o)
				req, _ := http.NewRequest(m.method, "http://api.test/", nil)
				if m.key != "" {
					req.Header.Set(m.key, "1")
				}
				resp, err := h.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				why, want := GaveUp(resp), c.why
				if want == ReasonAttempts && m.attempts == 1 {
					want = ReasonUnsafe
				}
				if got := len(s.arrivals()); got != m.attempts || (why == nil) != (want == "") || why != nil && (why.Reason != want || why.Attempts != m.attempts) {
					t.Errorf("%s %s, %d %v: %d attempts, %v; want %d, %s", m.method, m.key, c.status, resp.Header, got, why, m.attempts, want)
				}
			})
		}
	}
}

// Failures of the network: only what may act twice is sent twice, and what cannot
// ever succeed is not.
func TestNetworkErrors(t *testing.T) {
	lost := errors.New("connection reset")
	for _, c := range []struct {
		name     string
		method   string
		err      error
		attempts int
	}{
		{"lost", "GET", lost, 3},
		{"lost", "POST", lost, 1},
		{"cut", "PUT", io.ErrUnexpectedEOF, 3},
	} {
		calls := 0
		inBubble(t, nil, func(s *rig) {
			o := steady()
			o.RetryRefused = true
			o.Transport = roundTrip(func(*http.Request) (*http.Response, error) { calls++; return nil, c.err })
			h, tr := s.client(o)
			req, _ := http.NewRequest(c.method, "http://api.test/", nil)
			_, err := h.Do(req)
			if !errors.Is(err, c.err) || calls != c.attempts || tr.Stats().Failed != uint64(c.attempts) {
				t.Errorf("%s %s: %d calls, %v; want %d", c.name, c.method, calls, err, c.attempts)
			}
		})
	}
}

// The same from a real transport.
func TestPointlessRequests(t *testing.T) {
	for _, url := range []string{"gopher://api.test/", "http:///path"} {
		attempts := uint64(0)
		inBubble(t, nil, func(s *rig) {
			_, tr := s.client(steady())
			req, err := http.NewRequest("GET", url, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = tr.RoundTrip(req)
			if attempts = tr.Stats().Attempts; err == nil || attempts != 1 || time.Since(s.began) > 0 {
				t.Errorf("%s: %d attempts, %v; want one", url, attempts, err)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
