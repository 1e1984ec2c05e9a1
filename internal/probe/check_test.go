package probe

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
)

// An api is a server in a bubble: 10 requests in 10 s for each key, with headers
// that tell the truth, and room for faults.
type api struct {
	mu     sync.Mutex
	rule   *comporta.Rule
	counts map[string]*comporta.Cell

	identity func(req *http.Request) string // whose budget it is
	lie      func(h http.Header, d *comporta.Decision)
	status   int                          // of refusals
	open     func(req *http.Request) bool // what the limit does not see
	answer   func(req *http.Request) int  // the status of what passes
	cors     func(h http.Header, denied bool)
}

func newAPI(t *testing.T) *api {
	limit := comporta.Limit{Name: "x", Algorithm: comporta.FixedWindow, Limit: 10, Window: 10 * time.Second}
	rule, err := limit.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return &api{
		rule: rule, counts: map[string]*comporta.Cell{}, status: 429,
		identity: func(req *http.Request) string { return req.Header.Get("X-Api-Key") },
	}
}

func (a *api) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(10 * time.Millisecond)
	defer time.Sleep(10 * time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	h := http.Header{"Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
	status := 200
	denied := false
	if a.open == nil || !a.open(req) {
		key := a.identity(req)
		if a.counts[key] == nil {
			a.counts[key] = &comporta.Cell{}
		}
		var d comporta.Taken
		a.rule.Advance(a.counts[key], comporta.InstantOf(time.Now()), 1, &d)
		if denied = !d.Allowed; denied {
			status = a.status
			h.Set("Retry-After", strconv.Itoa(int((d.RetryAfter+time.Second-1)/time.Second)))
		}
		h.Set("RateLimit-Limit", "10")
		h.Set("RateLimit-Remaining", strconv.FormatInt(d.Remaining, 10))
		h.Set("RateLimit-Reset", strconv.Itoa(int((d.ResetAfter+time.Second-1)/time.Second)))
		if a.lie != nil {
			a.lie(h, &d.Decision)
		}
	}
	if status == 200 && a.answer != nil {
		status = a.answer(req)
	}
	if a.cors != nil && req.Header.Get("Origin") != "" {
		a.cors(h, denied)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("{}")), Request: req}, nil
}

// asked is the answer to one check of an API whose limit is known.
func asked(t *testing.T, a *api, name string) (check Check) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		target := Target{Method: "GET", URL: "http://api.test/search", Identities: []http.Header{{"X-Api-Key": {"Key12345"}}, {"X-Api-Key": {"other"}}}}
		session := NewSession(NewSender(target, a), Budget{Requests: 2000, Time: 10 * time.Minute}, nil)
		p := &prober{ctx: t.Context(), options: Options{Target: target}, session: session, report: &Report{Target: target, Finding: &Finding{
			Limited: true, Limit: a.rule.Limit(), Window: Estimate{10, 9.9, 10.1}, Units: Estimate{10, 10, 10}, Burst: Estimate{10, 10, 10},
			Algorithms:   []Candidate{{a.rule.Limit().Algorithm, 0.97}},
			DenialsCount: Answer{Known: true, Certainty: 0.97, Why: "they do not"},
		}}}
		for range 12 { // what was seen before
			if _, err := session.Shoot(p.ctx, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range checks {
			if c.name == name {
				var err error
				if check, err = c.ask(p); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
		t.Fatalf("no check is named %s", name)
	})
	return check
}

func TestChecks(t *testing.T) {
	byAddress := func(req *http.Request) string { return req.Header.Get("X-Forwarded-For") }
	for _, c := range []struct {
		check, name string
		fault       func(*api)
		want        Verdict
		seen        string
	}{
		{"refusal", "sound", func(*api) {}, Good, "status 429; Retry-After"},
		{"refusal", "503", func(a *api) { a.status = 403 }, Bad, "not 429"},
		{"refusal", "no Retry-After", func(a *api) { a.lie = func(h http.Header, _ *comporta.Decision) { h.Del("Retry-After") } }, Warn, "no Retry-After"},
		{"refusal", "Retry-After: 0", func(a *api) { a.lie = func(h http.Header, _ *comporta.Decision) { set(h, "Retry-After", "0") } }, Bad, "Retry-After: 0"},
		{"refusal", "twice", func(a *api) { a.lie = func(h http.Header, _ *comporta.Decision) { h.Add("Retry-After", "3") } }, Bad, "2 Retry-After lines"},
		{"refusal", "a fraction", func(a *api) { a.lie = func(h http.Header, _ *comporta.Decision) { set(h, "Retry-After", "1.5") } }, Warn, "no whole seconds"},
		{"refusal", "in months", func(a *api) { a.lie = func(h http.Header, _ *comporta.Decision) { set(h, "Retry-After", "2147484") } }, Bad, "2147484"},
		{"headers", "sound", func(*api) {}, Good, "told as ratelimit"},
		{"headers", "none", func(a *api) { a.lie = func(h http.Header, _ *comporta.Decision) { drop(h) } }, Warn, "no answer"},
		{"headers", "on refusals only", func(a *api) {
			a.lie = func(h http.Header, d *comporta.Decision) {
				if d.Allowed {
					drop(h)
				}
			}
		}, Warn, "on refusals only"},
		{"remaining", "sound", func(*api) {}, Good, "it did"},
		{"remaining", "too much", func(a *api) { a.lie = func(h http.Header, _ *comporta.Decision) { h.Set("RateLimit-Remaining", "5") } }, Bad, "the next was refused"},
		{"boundary", "fixed window", func(*api) {}, Warn, "yes: 19 passed within"},
		{"denials", "they do not", func(*api) {}, Good, "they do not: "},
		{"retry-after", "sound", func(*api) {}, Good, "the next request passes"},
		{"retry-after", "too short", func(a *api) { a.lie = func(h http.Header, _ *comporta.Decision) { set(h, "Retry-After", "1") } }, Bad, "refused after exactly that"},
		{"retry-after", "too long", func(a *api) {
			a.lie = func(h http.Header, d *comporta.Decision) {
				set(h, "Retry-After", strconv.Itoa(int(d.RetryAfter/time.Second)+10))
			}
		}, Warn, "passes after"},
		{"retry-after", "not told", func(a *api) { a.lie = func(h http.Header, _ *comporta.Decision) { h.Del("Retry-After") } }, Unknown, "does not tell"},
		{"reset", "sound", func(*api) {}, Good, "the next request passes"},
		{"reset", "too short", func(a *api) { a.lie = func(h http.Header, _ *comporta.Decision) { h.Set("RateLimit-Reset", "1") } }, Bad, "refused after exactly that"},
		{"isolation", "sound", func(*api) {}, Good, "the second identity passes"},
		{"isolation", "one for all", func(a *api) { a.identity = func(*http.Request) string { return "" } }, Bad, "refused (429) once the first"},
		{"methods", "HEAD and OPTIONS are not known", func(a *api) { a.answer, a.open = knowsGet, byAnother }, Good, "HEAD (501); OPTIONS is not served (501)"},
		{"cors", "no preflights", func(a *api) {
			a.answer, a.open = knowsGet, byAnother
			a.cors = func(h http.Header, _ bool) {
				h.Set("Access-Control-Allow-Origin", "*")
				h.Set("Access-Control-Expose-Headers", "*")
			}
		}, Warn, "a preflight is not answered as one (501)"},
		{"addresses", "sound", func(*api) {}, Good, "none does"},
		{"addresses", "believed", func(a *api) { a.identity = byAddress }, Bad, "X-Forwarded-For (200)"},
		{"addresses", "Forwarded believed", func(a *api) {
			a.identity = func(req *http.Request) string { return req.Header.Get("Forwarded") }
		}, Bad, "past the limit: Forwarded (200)"},
		{"paths", "sound", func(*api) {}, Good, "none does"},
		{"paths", "by the path as it is sent", func(a *api) {
			a.identity = func(req *http.Request) string { return req.URL.EscapedPath() }
		}, Bad, "upper case /SEARCH (200)"},
		{"paths", "a slash more", func(a *api) {
			a.open = func(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/") }
		}, Bad, "a slash more /search/ (200)"},
		{"paths", "not found there", func(a *api) {
			a.open = func(req *http.Request) bool { return req.URL.Path != "/search" }
			a.answer = func(req *http.Request) int {
				if req.URL.Path != "/search" {
					return 404
				}
				return 200
			}
		}, Good, "not limited, and not served either"},
		{"keys", "made-up ones pass", func(*api) {}, Bad, "made-up key 1 (200)"},
		{"keys", "refused", func(a *api) {
			a.answer = func(req *http.Request) int {
				if k := req.Header.Get("X-Api-Key"); k != "Key12345" && k != "other" {
					return 401
				}
				return 200
			}
		}, Good, "made-up key 1 (401)"},
		{"methods", "sound", func(a *api) { a.open = func(req *http.Request) bool { return req.Method == "OPTIONS" } }, Good, "OPTIONS passes"},
		{"methods", "HEAD is free", func(a *api) { a.open = func(req *http.Request) bool { return req.Method == "HEAD" } }, Bad, "HEAD (200)"},
		{"cors", "sound", func(a *api) {
			a.open = func(req *http.Request) bool { return req.Method == "OPTIONS" }
			a.cors = func(h http.Header, _ bool) {
				h.Set("Access-Control-Allow-Origin", "*")
				h.Set("Access-Control-Expose-Headers", "Retry-After")
			}
		}, Good, "Retry-After"},
		{"cors", "not on refusals", func(a *api) {
			a.open = func(req *http.Request) bool { return req.Method == "OPTIONS" }
			a.cors = func(h http.Header, denied bool) {
				if !denied {
					h.Set("Access-Control-Allow-Origin", "*")
				}
			}
		}, Bad, "no Access-Control-Allow-Origin"},
		{"cors", "preflights count", func(a *api) {
			a.identity = func(*http.Request) string { return "" }
			a.cors = func(h http.Header, _ bool) { h.Set("Access-Control-Allow-Origin", "*") }
		}, Bad, "a preflight is refused"},
		{"cors", "only on what passes", func(a *api) {
			a.open = func(req *http.Request) bool { return req.Method == "OPTIONS" }
			a.cors = func(h http.Header, denied bool) {
				if !denied && h.Get("RateLimit-Limit") != "" {
					h.Set("Access-Control-Allow-Origin", "*")
				}
			}
		}, Bad, "no Access-Control-Allow-Origin"},
		{"cors", "not for scripts", func(*api) {}, Unknown, "it serves no scripts"},
		{"concurrency", "sound", func(*api) {}, Good, "10 passed, of a budget of 10"},
		{"concurrency", "a race", func(a *api) {
			n := 0
			a.identity = func(*http.Request) string { n++; return strconv.Itoa(n % 3) }
		}, Bad, "20 passed"},
		{"instances", "sound", func(*api) {}, Good, "a connection of its own: 10 passed"},
	} {
		t.Run(c.check+"/"+c.name, func(t *testing.T) {
			a := newAPI(t)
			c.fault(a)
			got := asked(t, a, c.check)
			if got.Verdict != c.want || !strings.Contains(got.Seen, c.seen) {
				t.Errorf("%s: %s; want %s: %s", got.Verdict, got.Seen, c.want, c.seen)
			}
			if got.Verdict == Bad && got.Todo == "" {
				t.Error("nothing is said of what to do")
			}
		})
	}
}

// knowsGet and byAnother are an API that does not know any method but GET.
func knowsGet(req *http.Request) int {
	if byAnother(req) {
		return http.StatusNotImplemented
	}
	return http.StatusOK
}

func byAnother(req *http.Request) bool { return req.Method != http.MethodGet }

// set changes a field of a refusal.
func set(h http.Header, name, value string) {
	if h.Get(name) != "" {
		h.Set(name, value)
	}
}

func drop(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Ratelimit") {
			h.Del(name)
		}
	}
}

// A whole probe of a sound API: the right limit, a report in each form, and no
// key in any of them.
func TestRunAndReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t)
		target := Target{Method: "GET", URL: "http://api.test/search?key=very-secret", Identities: []http.Header{{"X-Api-Key": {"very-secret"}}, {"X-Api-Key": {"secret-too"}}}}
		limit, err := comporta.ParseLimit("10/10s")
		if err != nil {
			t.Fatal(err)
		}
		limit.Algorithm = comporta.FixedWindow
		r, err := Run(t.Context(), Options{Target: target, Budget: Budget{3000, 20 * time.Minute}, Sender: NewSender(target, a), Expect: &Contract{Limit: limit}})
		if err != nil || r.Ended != "" {
			t.Fatal(err, r.Ended)
		}
		if !r.Finding.Limited || r.Finding.Algorithms[0].Algorithm != comporta.FixedWindow || r.Finding.Limit.Limit != 10 {
			t.Errorf("%+v", r.Finding)
		}
		if !r.Kept() {
			t.Errorf("the contract is not kept: %+v", r.Checks)
		}
		if r.Requests > 3000 || r.Took > 20*time.Minute {
			t.Errorf("%d requests in %v", r.Requests, r.Took)
		}
		for name, write := range map[string]func(io.Writer) error{
			"text": func(w io.Writer) error { return r.WriteText(w, Screen{Width: 80}) }, "json": r.WriteJSON, "junit": r.WriteJUnit, "html": r.WriteHTML,
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(name, err)
			}
			if strings.Contains(b.String(), "secret") {
				t.Errorf("%s has a key in it", name)
			}
			switch name {
			case "json":
				var v map[string]any
				if err := json.Unmarshal(b.Bytes(), &v); err != nil || v["limited"] != true {
					t.Error(err, v)
				}
			case "junit":
				var v junitSuite
				if err := xml.Unmarshal(b.Bytes(), &v); err != nil || v.Tests != len(r.Checks) {
					t.Error(err, v)
				}
			default:
				if !strings.Contains(b.String(), "fixed_window") {
					t.Errorf("%s: %s", name, &b)
				}
			}
		}
	})
}

func TestContract(t *testing.T) {
	finding := func(limit string, algorithm comporta.Algorithm) *Finding {
		l, err := comporta.ParseLimit(limit)
		if err != nil {
			t.Fatal(err)
		}
		l.Algorithm = algorithm
		burst := float64(max(l.Burst, 1))
		if l.Burst == 0 {
			burst = float64(l.Limit)
		}
		units, window := float64(l.Limit), l.Window.Seconds()
		return &Finding{Limited: true, Limit: l, Units: Estimate{units, units, units}, Window: Estimate{window, window * 0.99, window * 1.01},
			Burst: Estimate{burst, burst, burst}, Algorithms: []Candidate{{algorithm, 0.97}}}
	}
	for _, c := range []struct {
		expect string
		found  *Finding
		kept   bool
	}{
		{"100/min burst 20", finding("100/min burst 20", comporta.TokenBucket), true},
		{"100/min burst 20", finding("5/3s burst 20", comporta.TokenBucket), true}, // the same rate
		{"100/min burst 20", finding("90/min burst 20", comporta.TokenBucket), false},
		{"100/min burst 20", finding("100/min burst 40", comporta.TokenBucket), false},
		{"100/min", finding("100/min", comporta.FixedWindow), true},
		{"100/min", finding("100/2m", comporta.FixedWindow), false},
		{"100/min", &Finding{AtLeast: 500, Within: time.Second}, false},
	} {
		limit, err := comporta.ParseLimit(c.expect)
		if err != nil {
			t.Fatal(err)
		}
		contract := Contract{Limit: limit, AnyAlgorithm: true}
		r := &Report{Checks: contract.check(c.found)}
		if r.Kept() != c.kept {
			t.Errorf("%s, and %s was found: %+v", c.expect, c.found.Limit, r.Checks)
		}
	}
	contract := Contract{Limit: finding("100/min", comporta.SlidingLog).Limit}
	if r := (&Report{Checks: contract.check(finding("100/min", comporta.FixedWindow))}); r.Kept() {
		t.Error("another algorithm is taken for the one that is expected")
	}
}
