package probe

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
)

// What the standards say of a refusal, one fault at a time.
func TestStandards(t *testing.T) {
	sound := http.Header{"Retry-After": {"7"}, "Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"},
		"Ratelimit-Policy": {`"burst";q=10;w=1, "daily";q=1000;w=86400`}, "Ratelimit": {`"burst";r=0;t=7`}}
	const problem = `{"type":"about:blank","title":"Too many","status":429}`
	for _, c := range []struct {
		name, field, value string // "" takes the field away
		body               string
		want               Verdict
		detail             string
	}{
		{"sound", "Cache-Control", "no-store", problem, Good, "RFC 9457 (problem details): kept"},
		{"two lines", "Retry-After", "7|8", problem, Bad, "2 lines"},
		{"a fraction", "Retry-After", "1.5", problem, Bad, "neither whole seconds nor a date"},
		{"a date", "Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT", problem, Good, "RFC 9110 (Retry-After): kept"},
		{"an old date", "Retry-After", "Sunday, 06-Nov-94 08:49:37 GMT", problem, Bad, "no longer to be sent"},
		{"UTC", "Retry-After", "Fri, 31 Dec 1999 23:59:59 UTC", problem, Bad, "neither"},
		{"Limit without Reset", "Ratelimit-Limit", "10", problem, Bad, "needs RateLimit-Reset"},
		{"an instant", "Ratelimit-Reset", "1790000000", problem, Bad, "is an instant"},
		{"a Reset of words", "Ratelimit-Reset", "soon", problem, Bad, "no whole number"},
		{"a dictionary", "Ratelimit", "limit=10, remaining=0, reset=7", problem, Warn, "later drafts do not know"},
		{"half a dictionary", "Ratelimit", "limit=10, reset=7", problem, Bad, "is not limit=, remaining= and reset="},
		{"no r", "Ratelimit", `"burst";t=7`, problem, Bad, "has no r"},
		{"the form of draft −12", "Ratelimit", `"burst";a=0;w=7`, problem, Good, "(drafts −08 to −12): kept"},
		{"a name without quotes", "Ratelimit", `burst;r=0;t=7`, problem, Warn, "not in quotes"},
		{"no list", "Ratelimit", `"burst;r=0`, problem, Bad, "is no list"},
		{"no policy of that name", "Ratelimit", `"other";r=0;t=7`, problem, Warn, "no policy of its name"},
		{"a policy without q", "Ratelimit-Policy", `"burst";w=1`, problem, Bad, "has no q"},
		{"a policy of no time", "Ratelimit-Policy", `"burst";q=1;w=0`, problem, Bad, "w=0"},
		{"the numbers of draft −06", "Ratelimit-Policy", `10;w=1`, problem, Good, ""},
		{"no JSON", "", "", "too many", Bad, "no JSON object"},
		{"another status", "", "", `{"title":"Too many","status":503}`, Warn, "its status is 503"},
		{"a number for a title", "", "", `{"title":7}`, Bad, "title is no text"},
		{"cached", "Cache-Control", "public, max-age=60", problem, Bad, "may be cached"},
		{"no body", "Content-Type", "text/plain", "", Warn, "no body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := sound.Clone()
			if c.field != "" {
				h[c.field] = strings.Split(c.value, "|")
			}
			if c.name == "the numbers of draft −06" {
				h.Del("RateLimit")
			}
			s := Shot{Status: 429, Header: h, Body: []byte(c.body), Request: &Request{}}
			got, err := (&prober{learned: []Shot{s}}).standards()
			if all := strings.Join(got.Details, "\n"); err != nil || got.Verdict != c.want || !strings.Contains(all, c.detail) {
				t.Errorf("%s, want %s with %q:\n%s", got.Verdict, c.want, c.detail, all)
			}
			if got.Verdict != Good && got.Todo == "" && got.Verdict == Bad {
				t.Error("nothing is said of what to do")
			}
		})
	}
	early := Shot{Status: 429, Header: sound, Body: []byte(problem), Request: &Request{}, Told: true, RetryAfter: 2 * time.Second}
	if got, _ := (&prober{learned: []Shot{early}}).standards(); got.Verdict != Warn || !strings.Contains(strings.Join(got.Details, ""), "ends before the reset") {
		t.Errorf("Retry-After before the reset: %+v", got)
	}
}

// A whole probe of an API with a fault, from the first request on.
func runOn(t *testing.T, a http.RoundTripper, change func(*Options)) (r *Report, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12345 * time.Millisecond)
		o := Options{Target: Target{Method: "GET", URL: "http://api.test/search", Identities: []http.Header{{"X-Api-Key": {"Key12345"}}}}, Budget: plenty}
		if change != nil {
			change(&o)
		}
		o.Sender = NewSender(o.Target, a)
		begun := time.Now()
		r, err = Run(t.Context(), o)
		if r.Requests > o.Budget.Requests || time.Since(begun) > o.Budget.Time {
			t.Errorf("%d requests in %v, of %+v", r.Requests, time.Since(begun), o.Budget)
		}
	})
	return r, err
}

func checkOf(t *testing.T, r *Report, name string) Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check is named %s", name)
	return Check{}
}

func TestRefusalsWithAnotherStatus(t *testing.T) {
	for _, c := range []struct {
		status      int
		limited     bool
		ended, todo string
		denied      int
	}{
		{503, false, "5xx", "add --denied 503", 0},
		{403, false, "answers turned from 200 to 403", "add --denied 403", 0},
		{503, true, "", "", 503},
		{403, true, "", "", 403},
	} {
		a := newAPI(t)
		a.status = c.status
		a.lie = func(h http.Header, _ *comporta.Decision) { drop(h); h.Del("Retry-After") }
		r, err := runOn(t, a, func(o *Options) { o.Target.Denied = c.denied })
		if err != nil {
			t.Fatal(err)
		}
		answers := checkOf(t, r, "answers")
		if r.Finding.Limited != c.limited || !strings.Contains(r.Ended, c.ended) || (r.Ended == "") != c.limited || !strings.Contains(answers.Todo, c.todo) {
			t.Errorf("%d, --denied %d: limited %v, ended %q, %+v", c.status, c.denied, r.Finding.Limited, r.Ended, answers)
		}
		if !c.limited && r.Requests > 60 {
			t.Errorf("%d: %d requests until it stopped", c.status, r.Requests)
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for status, todo := range map[int]string{401: "give a key", 404: "the URL", 302: "the URL that it leads to"} {
		a := newAPI(t)
		a.answer = func(*http.Request) int { return status }
		r, err := runOn(t, a, func(o *Options) { o.Quick = true })
		if c := checkOf(t, r, "answers"); err != nil || c.Verdict != Warn || !strings.Contains(c.Todo, todo) {
			t.Errorf("%d: %v, %+v", status, err, c)
		}
	}
	a := newAPI(t)
	a.answer = func(*http.Request) int { return 404 }
	whole, err := runOn(t, a, func(o *Options) {
		o.Target.Identities = append(o.Target.Identities, http.Header{"X-Api-Key": {"other"}})
	})
	if c := checkOf(t, whole, "isolation"); err != nil || c.Verdict != Good {
		t.Errorf("the second is answered as the first: %v, %+v", err, c)
	}
	if c := checkOf(t, whole, "keys"); c.Verdict != Bad {
		t.Errorf("made-up keys are answered as the first: %+v", c)
	}
	nobody := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("nobody is there") })
	r, err := runOn(t, nobody, nil)
	if c := checkOf(t, r, "answers"); err != nil || c.Verdict != Bad || !strings.Contains(c.Seen, "nobody is there") || r.Requests > 20 || r.Ended == "" {
		t.Errorf("%v, %d requests, ended %q, %+v", err, r.Requests, r.Ended, c)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What a window is too long for leaves the other checks be.
func TestAWindowThatIsLongerThanTheBudget(t *testing.T) {
	a := newAPI(t)
	limit := comporta.Limit{Name: "x", Algorithm: comporta.FixedWindow, Limit: 10, Window: time.Hour}
	a.rule, _ = limit.Compile()
	r, err := runOn(t, a, func(o *Options) {
		o.Target.Identities = append(o.Target.Identities, http.Header{"X-Api-Key": {"other"}})
		o.Budget = Budget{500, time.Minute}
	})
	if err != nil || r.Ended != "" {
		t.Fatal(err, r.Ended)
	}
	for name, want := range map[string]Verdict{"retry-after": Unknown, "isolation": Good, "addresses": Good, "keys": Bad, "refusal": Good, "paths": Good} {
		if c := checkOf(t, r, name); c.Verdict != want {
			t.Errorf("%s: %s, want %s: %s", name, c.Verdict, want, c.Seen)
		}
	}
}

func TestAnInterruptionKeepsWhatWasFound(t *testing.T) {
	a := newAPI(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(8*time.Second, cancel)
		target := Target{Method: "GET", URL: "http://api.test/search"}
		r, err := Run(ctx, Options{Target: target, Budget: plenty, Sender: NewSender(target, a)})
		if !errors.Is(err, context.Canceled) || r == nil || r.Finding == nil || !r.Finding.Limited || r.Ended == "" || r.Requests == 0 {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

// A bucket that gives back quickly: no unit that comes back just then is taken for a
// way past the limit, nor for the second client's own.
func TestQuickBucketsAreNoWayPast(t *testing.T) {
	for _, rate := range []int64{1, 5, 20, 50} {
		a := newAPI(t)
		limit := comporta.Limit{Name: "x", Algorithm: comporta.TokenBucket, Limit: rate, Window: time.Second, Burst: 10}
		a.rule, _ = limit.Compile()
		a.identity = func(*http.Request) string { return "all" }
		r, err := runOn(t, a, func(o *Options) {
			o.Target.Identities = append(o.Target.Identities, http.Header{"X-Api-Key": {"other"}})
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]Verdict{"isolation": Bad, "addresses": Good, "keys": Good, "paths": Good} {
			if c := checkOf(t, r, name); c.Verdict != want {
				t.Errorf("%d/s, %s: %s, want %s: %s", rate, name, c.Verdict, want, c.Seen)
			}
		}
	}
}

// Who believes X-Forwarded-For may at least count IPv6 neighbours as one.
func TestNeighbours(t *testing.T) {
	for seen, identity := range map[string]func(string) string{
		"an IPv6 neighbour, of the same /64, has a limit of its own": func(address string) string { return address },
		"IPv6 neighbours count as one": func(address string) string {
			network, _, _ := strings.Cut(address, "::")
			return network
		},
	} {
		a := newAPI(t)
		a.identity = func(req *http.Request) string { return identity(req.Header.Get("X-Forwarded-For")) }
		if c := asked(t, a, "addresses"); c.Verdict != Bad || !strings.Contains(c.Seen, seen) {
			t.Errorf("%s: %s", c.Verdict, c.Seen)
		}
	}
}

// A sliding log was inferred, and double passes around a boundary: it is told as what
// it is.
func TestARefutedLog(t *testing.T) {
	decide := ownWindowOf(10, 10*time.Second)
	a := newAPI(t)
	log := comporta.Limit{Name: "x", Algorithm: comporta.SlidingLog, Limit: 10, Window: 10 * time.Second}
	a.rule, _ = log.Compile()
	var f *Finding
	server := roundTripper(func(req *http.Request) (*http.Response, error) {
		time.Sleep(20 * time.Millisecond)
		a.mu.Lock()
		defer a.mu.Unlock()
		status := 200
		if !decide(time.Now()) {
			status = 429
		}
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	})
	synctest.Test(t, func(t *testing.T) {
		target := Target{Method: "GET", URL: "http://api.test/"}
		f = &Finding{Limited: true, Limit: log, Window: Estimate{10, 9.9, 10.1}, Units: Estimate{10, 10, 10}, Algorithms: []Candidate{{comporta.SlidingLog, 0.97}}}
		p := &prober{ctx: t.Context(), options: Options{Target: target}, session: NewSession(NewSender(target, server), plenty, nil), report: &Report{Finding: f}}
		c, err := p.boundary()
		if err != nil || c.Verdict != Warn || !strings.Contains(c.Seen, "yes: 19 passed") {
			t.Errorf("%v, %+v", err, c)
		}
	})
	if f.Algorithms[0].Algorithm != comporta.FixedWindow || f.DenialsCount.Known || f.Limit.Algorithm != comporta.FixedWindow {
		t.Errorf("%+v", f)
	}
}
