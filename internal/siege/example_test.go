package siege

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta/internal/redistest"
)

// api is the API behind the gateway: a login whose right password is "right", and
// everything else.
func api(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.URL.Path == "/login" && !strings.Contains(string(body), "right"):
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/chat":
		fmt.Fprint(w, `{"text":"hello","usage":{"total_tokens":700}}`)
	default:
		fmt.Fprintln(w, "fine")
	}
}

// plans are those of the keys.
const plans = "plans: {free: {}, pro: {}}\n"

const keys = `
- {id: acme, key: canary-acme-0123456789, plan: pro}
- {id: acme, key: canary-acme-rotated-01, plan: pro}
- {id: hobby, key: canary-hobby-0123456789, plan: free}
- {id: old, key: canary-old-0123456789, plan: pro, expires: 2020-01-31}
`

// onBoth runs a test on the example's own store, and on Redis.
func onBoth(t *testing.T, test func(t *testing.T, f *fort, m mint)) {
	t.Run("memory", func(t *testing.T) {
		f, m := example(t, "")
		test(t, f, m)
	})
	t.Run("redis", func(t *testing.T) {
		f, m := example(t, "  redis: "+redistest.Start(t).URL()+"\n")
		test(t, f, m)
	})
}

// example is the policy that people begin with, every word of it; store is what
// else its store says.
func example(t *testing.T, store string) (f *fort, m mint) {
	t.Helper()
	text, err := os.ReadFile("../../config/testdata/example/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m = newMint(t)
	policy := strings.ReplaceAll(string(text), "http://127.0.0.1:9000", "UPSTREAM")
	policy = strings.ReplaceAll(policy, "127.0.0.1/32", "127.0.0.2/32")
	policy = strings.Replace(policy, "store:\n", "store:\n"+store, 1)
	return raise(t, policy, map[string]string{"keys.yaml": keys, "jwks.json": m.set()}, http.HandlerFunc(api)), m
}

// told is the status of an answer, what remains and what a full budget holds.
func told(a answer) string {
	return fmt.Sprintf("%d %s/%s", a.status, a.header.Get("RateLimit-Remaining"), a.header.Get("RateLimit-Limit"))
}

// atLeast says whether an answer tells as much, or, since buckets fill while the test
// runs, a little more of the same budget.
func atLeast(a answer, want string) bool {
	var status, remaining, limit, had, full int
	if _, err := fmt.Sscanf(want, "%d %d/%d", &status, &remaining, &limit); err != nil {
		return false
	}
	if _, err := fmt.Sscanf(told(a), "%d %d/%d", &status, &had, &full); err != nil {
		return false
	}
	return strings.HasPrefix(want, fmt.Sprint(a.status)) && full == limit && remaining <= had && had < limit
}

// passes is how many of n such requests pass, one after the other.
func (f *fort) passes(n int, from, request string) (passed int) {
	for range n {
		if f.ask(from, request).status == http.StatusOK {
			passed++
		}
	}
	return passed
}

func TestEachLimitOfTheExample(t *testing.T) { onBoth(t, eachLimit) }

func eachLimit(t *testing.T, f *fort, m mint) {
	alice := "Authorization: Bearer " + m.token("alice", map[string]any{"plan": "pro"})
	bob := "Authorization: Bearer " + m.token("bob", nil) // whose plan is the unknown one, free
	for _, c := range []struct{ what, from, request, want string }{
		{"nobody", "127.0.0.1", "GET /", "200 9/10"},
		{"a key that is unknown", "127.0.0.1", "GET /\nX-API-Key: who-knows", "200 8/10"},
		{"a key that has expired", "127.0.0.1", "GET /\nX-API-Key: canary-old-0123456789", "200 7/10"},
		{"a token for others", "127.0.0.1", "GET /\nAuthorization: Bearer " + m.token("alice", map[string]any{"aud": "shop"}), "200 6/10"},
		{"a token that nobody signed", "127.0.0.1", "GET /\nAuthorization: Bearer " + unsigned("alice"), "200 5/10"},
		{"a key by its override", "127.0.0.1", "GET /\nX-API-Key: canary-acme-0123456789", "200 499/500"},
		{"its successor", "127.0.0.1", "GET /\nX-API-Key: canary-acme-rotated-01", "200 498/500"},
		{"a key by its plan", "127.0.0.1", "GET /\nX-API-Key: canary-hobby-0123456789", "200 19/20"},
		{"a user by her plan", "127.0.0.1", "GET /\n" + alice, "200 99/100"},
		{"a user without one", "127.0.0.1", "GET /\n" + bob, "200 19/20"},
		{"an export", "127.0.0.1", "GET /export\n" + bob, "200 9/20"},
		{"a search", "127.0.0.1", "GET /search\n" + alice, "200 9/10"},
		{"another address", "127.0.0.3", "GET /", "200 9/10"},
		{"what a stranger says of its address", "127.0.0.3", "GET /\nX-Forwarded-For: 203.0.113.7", "200 8/10"},
		{"what the proxy says", "127.0.0.2", "GET /\nX-Forwarded-For: 203.0.113.7", "200 9/10"},
		{"a neighbour of its /64", "127.0.0.2", "GET /\nX-Forwarded-For: 2001:db8:1:2::1", "200 9/10"},
		{"and another", "127.0.0.2", "GET /\nX-Forwarded-For: 2001:db8:1:2::2", "200 8/10"},
	} {
		if got := f.ask(c.from, c.request); !atLeast(got, c.want) {
			t.Errorf("%s: %s, want %s", c.what, told(got), c.want)
		}
	}
	if got := f.passes(3, "127.0.0.1", "GET /export\n"+bob); got > 1 { // 9 of 20 units are left, 10 are wanted
		t.Errorf("%d more exports of bob's pass", got)
	}
	carol := "Authorization: Bearer " + m.token("carol", nil)
	if got := f.passes(15, "127.0.0.4", "GET /search\n"+carol); got < 10 || got > 11 { // 11 where a minute begins meanwhile
		t.Errorf("%d searches of carol's pass, want 10", got)
	}
	if got := f.passes(105, "127.0.0.4", "GET /reports/7\nX-API-Key: canary-acme-0123456789"); got != 105 {
		t.Errorf("%d reports pass, want all of 105: the limit is in shadow", got)
	}
}

func TestLoginOfTheExample(t *testing.T) { onBoth(t, logins) }

func logins(t *testing.T, f *fort, _ mint) {
	form := func(name, password string) string {
		return "POST /login\nContent-Type: application/x-www-form-urlencoded\n\nusername=" + name + "&password=" + password
	}
	wrong, right := form("alice", "no"), form("alice", "right")
	for i := range 4 {
		if got := f.ask("127.0.0.5", wrong).status; got != 401 {
			t.Fatalf("guess %d: %d", i+1, got)
		}
	}
	// A right one is given back, so that it can be said any number of times.
	if got := f.passes(3, "127.0.0.5", right); got != 3 {
		t.Errorf("%d of 3 right logins pass", got)
	}
	for i, want := range []int{401, 429, 429} {
		if got := f.ask("127.0.0.5", wrong).status; got != want {
			t.Errorf("guess %d: %d, want %d", i+5, got, want)
		}
	}
	// However the name is written, and in whatever kind of body.
	for _, same := range []string{
		form("ALICE", "no"), form("%20alice+", "no"), form("%EF%BC%A1lice", "no"),
		"POST /login\nContent-Type: application/json\n\n{\"username\":\"Alice\",\"password\":\"no\"}",
	} {
		if got := f.ask("127.0.0.5", same).status; got != 429 {
			t.Errorf("%q: %d, want 429", same, got)
		}
	}
	// From home she gets in.
	if got := f.ask("127.0.0.6", right).status; got != 200 {
		t.Errorf("alice from home: %d", got)
	}
	for body, want := range map[string]int{
		"username=a&username=b":                   400,
		"username=" + strings.Repeat("a", 70_000): 413,
	} {
		if got := f.ask("127.0.0.7", "POST /login\nContent-Type: application/x-www-form-urlencoded\n\n"+body).status; got != want {
			t.Errorf("%.40s: %d, want %d", body, got, want)
		}
	}
	// Guesses at once cannot race: each is taken when it comes.
	var mu sync.Mutex
	got := map[int]int{}
	var guessing sync.WaitGroup
	for range 15 {
		guessing.Go(func() {
			status := f.ask("127.0.0.8", form("carol", "no")).status
			mu.Lock()
			got[status]++
			mu.Unlock()
		})
	}
	guessing.Wait()
	if diff := cmp.Diff(map[int]int{401: 5, 429: 10}, got); diff != "" {
		t.Error(diff)
	}
	// An address has twenty attempts, right and wrong, whoever it says it is.
	attempts := 0
	for i := range 30 {
		keyed := strings.Replace(form(fmt.Sprint("user", i), "right"), "\n", "\nX-API-Key: canary-acme-0123456789\n", 1)
		if f.ask("127.0.0.9", keyed).status == 200 {
			attempts++
		}
	}
	if attempts != 20 {
		t.Errorf("%d attempts pass, want 20", attempts)
	}
}
