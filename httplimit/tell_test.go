package httplimit_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/policy"
)

// Epoch seconds are rounded up as a sum, not each part for itself.
func TestEpochResetIsRoundedUp(t *testing.T) {
	limit, clock := enforce(t, &policy.Policy{
		Headers: []policy.HeaderSet{policy.XRateLimit}, Limits: []*policy.Limit{perAddress(t, "a", "4/min", comporta.TokenBucket)},
	}, httplimit.Options{})
	clock.at(0.25) // three of four are left: 45 s to spread them over
	if got := ask(limit(ok), get("/")).Header.Get("X-Ratelimit-Reset"); got != "1795996846" {
		t.Error(got)
	}
}

// A shadow limit that is shown is told of, but neither blamed nor waited for.
func TestShownShadow(t *testing.T) {
	show := true
	shadow := perAddress(t, "shadow", "1/h", comporta.FixedWindow)
	shadow.Mode, shadow.Show = policy.Shadow, &show
	limit, _ := enforce(t, &policy.Policy{
		Headers: []policy.HeaderSet{policy.Draft11},
		Limits:  []*policy.Limit{shadow, perAddress(t, "real", "2/min", comporta.FixedWindow)},
	}, httplimit.Options{})
	h := limit(upstream(503, "Retry-After: 3"))
	for range 2 {
		r := ask(h, get("/"))
		rates := parseList(t, r.Header["Ratelimit"], "r")
		if r.Header.Get("Retry-After") != "3" || rates["shadow"][0] != 0 {
			t.Errorf("%s %v", r.Status, r.Header)
		}
	}
	r := ask(h, get("/"))
	body, err := io.ReadAll(r.Body)
	if err != nil || !strings.Contains(string(body), `"violated-policies":["real"]`) {
		t.Errorf("%s %s", r.Status, body)
	}
}

// What never passes is not told to retry, whatever was in the header before.
func TestNeverHasNoRetryAfter(t *testing.T) {
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "0/s", comporta.FixedWindow)}}, httplimit.Options{})
	h := limit(ok)
	r := ask(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "1")
		h.ServeHTTP(w, r)
	}), get("/"))
	if _, there := r.Header["Retry-After"]; r.StatusCode != 429 || there {
		t.Errorf("%s %v", r.Status, r.Header)
	}
}

// gRPC clients are told milliseconds, rounded up, while they fit 32 bits.
func TestPushback(t *testing.T) {
	grpc := with("Content-Type", "application/grpc")
	for text, want := range map[string]string{"1/min": "30001", "1/60d": "-1", "0/s": "-1"} {
		limit, clock := enforce(t, &policy.Policy{
			CORS: &policy.CORS{Origins: []string{"*"}}, Limits: []*policy.Limit{perAddress(t, "a", text, comporta.TokenBucket)},
		}, httplimit.Options{})
		h := limit(ok)
		ask(h, get("/", grpc))
		clock.at(29.9995)
		r := ask(h, get("/", grpc))
		got := []string{r.Header.Get("Grpc-Status"), r.Header.Get("Grpc-Retry-Pushback-Ms"), r.Header.Get("Access-Control-Allow-Origin")}
		if diff := cmp.Diff([]string{"8", want, "*"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// 101 is an answer and no information.
func TestSwitchingProtocolsIsAnAnswer(t *testing.T) {
	limit, _ := enforce(t, &policy.Policy{Limits: []*policy.Limit{perAddress(t, "a", "3/min", comporta.TokenBucket)}}, httplimit.Options{})
	header := http.Header{}
	w := &statuses{sink: sink{header: header}}
	limit(upstream(101)).ServeHTTP(w, get("/"))
	if diff := cmp.Diff([]int{3}, w.fields); diff != "" {
		t.Errorf("fields when the status was written (-want +got):\n%s", diff)
	}
}

// statuses counts the header fields that were there at each status.
type statuses struct {
	sink
	fields []int
}

func (s *statuses) WriteHeader(int) { s.fields = append(s.fields, len(s.header)) }

// Where the handler allows no origin nothing is exposed.
func TestNoOriginNoExposure(t *testing.T) {
	limit, _ := enforce(t, &policy.Policy{
		CORS: &policy.CORS{Origins: []string{"https://app.example.com"}}, Limits: []*policy.Limit{perAddress(t, "a", "3/min", comporta.TokenBucket)},
	}, httplimit.Options{})
	r := ask(limit(ok), get("/", with("Origin", "https://app.example.com")))
	for name := range r.Header {
		if strings.HasPrefix(name, "Access-Control-") || name == "Vary" {
			t.Errorf("%s: %s", name, r.Header[name])
		}
	}
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept")
		w.Header().Add("Vary", "origin")
		limit(ok).ServeHTTP(w, r)
	})
	r = ask(outer, get("/%2f"))
	if diff := cmp.Diff([]string{"Accept", "origin"}, r.Header["Vary"]); diff != "" {
		t.Errorf("Vary (-want +got):\n%s", diff)
	}
}
