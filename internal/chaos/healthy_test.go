package chaos

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
)

// patient is a deadline that the noise of a busy machine does not reach.
const patient = 5 * time.Second

// healthy: whatever the algorithm, five gateways admit the limit, no unit more
// and none less; of several limits too, all or nothing.
func healthy(t *testing.T, r *report) {
	server := redistest.Start(t)
	f := startFleet(t, server.URL(), server.Prefix, patient)
	const clients = 4 // so that each is asked by all gateways
	for _, path := range []string{"/local/", "/log/", "/counter/", "/bucket/"} {
		got := undisturbed(t, func(try int) answers {
			return f.burst(50, clients*2*limit, func(i int) ask { return ask{path: path, client: fmt.Sprintf("198.51.%d.%d", try, i%clients)} })
		})
		got.only(t, path, http.StatusOK, http.StatusTooManyRequests)
		for client, n := range got.passed() {
			if n != limit {
				t.Errorf("%s: %d of %s passed, want %d", path, n, client, limit)
			}
		}
	}
	r.rows = append(r.rows, row{"nothing", exactly, [4]string{fmt.Sprint(limit), "–", "–", "–"}})
	t.Run("several limits", func(t *testing.T) { severalLimits(t, f) })
	t.Run("two gateways", func(t *testing.T) { twoGateways(t, f) })
	t.Run("a queue", func(t *testing.T) { aQueue(t, f) })
	t.Run("a value made by hand", func(t *testing.T) { aForeignValue(t, f, server) })
}

// severalLimits: 100 for each of four clients, 250 for all.
func severalLimits(t *testing.T, f *fleet) {
	got := undisturbed(t, func(try int) answers {
		return f.burst(50, 1000, func(i int) ask {
			return ask{path: "/several/", client: fmt.Sprintf("198.51.%d.%d", try, i%4), tenant: fmt.Sprint("all of ", try)}
		})
	})
	got.only(t, "/several/", http.StatusOK, http.StatusTooManyRequests)
	if n := got.count(http.StatusOK); n != 250 {
		t.Errorf("%d passed, want 250", n)
	}
	for client, n := range got.passed() {
		if n > limit {
			t.Errorf("%d of %s passed, want %d at most", n, client, limit)
		}
	}
}

// twoGateways: of 200 requests spread over both at once, 100 pass.
func twoGateways(t *testing.T, f *fleet) {
	got := undisturbed(t, func(try int) answers {
		return f.burst(20, 2*limit, func(i int) ask {
			return ask{path: "/local/", client: fmt.Sprint("203.0.113.", try), at: "http://" + f.gateways[i%2].listen}
		})
	})
	if passed, refused := got.count(http.StatusOK), got.count(http.StatusTooManyRequests); passed != limit || refused != limit {
		t.Errorf("%d passed, %d were refused; want %d each", passed, refused, limit)
	}
}

// aQueue that lets one out each second does so whatever the number of gateways
// and connections: the first at once, then one a second.
func aQueue(t *testing.T, f *fleet) {
	all := undisturbed(t, func(try int) answers {
		s := f.stream(400, same("/queue/", fmt.Sprint("203.0.113.", try)))
		redistest.Until(t, 20*time.Second, func() error {
			if n := s.soFar().count(http.StatusOK); n < 4 {
				return fmt.Errorf("%d passed", n)
			}
			return nil
		})
		return s.stop()
	})
	all.only(t, "/queue/", http.StatusOK, http.StatusTooManyRequests)
	var passed answers
	for _, a := range all {
		if a.status != http.StatusOK {
			continue
		}
		// A pass is decided between the question and the answer.
		for _, b := range passed {
			if longest := max(a.begun.Add(a.took).Sub(b.begun), b.begun.Add(b.took).Sub(a.begun)); longest < time.Second {
				t.Errorf("two passed within %v", longest)
			}
		}
		passed = append(passed, a)
	}
}

// aForeignValue in the place of a state, without expiry, is no lock: requests
// under the limit go on to pass, and the key expires again.
func aForeignValue(t *testing.T, f *fleet, server *redistest.Server) {
	const client = "198.51.100.102"
	key := fmt.Sprintf("%s:{%d:address:%s}5:quick", server.Prefix, len("address:"+client), client)
	calm := func(what string) {
		t.Helper()
		f.burst(5, 20, same("/quick/", client)).only(t, what, http.StatusOK) // of 300 in a second
		if ttl := server.MustDo("PTTL", key).(int64); ttl == -1 {
			t.Errorf("%s: the key does not expire", what)
		}
	}
	calm("before")
	state, _ := server.MustDo("GET", key).(string)
	if state == "" {
		t.Fatalf("there is no state in %s", key)
	}
	for what, value := range map[string][]string{
		"a number":         {"SET", key, "99999"},
		"nothing":          {"SET", key, ""},
		"a state cut off":  {"SET", key, state[:len(state)-1]},
		"a list":           {"RPUSH", key, "a"},
		"a hash":           {"HSET", key, "a", "b"},
		"a state for ever": {"SET", key, state},
	} {
		server.MustDo("DEL", key)
		server.MustDo(value...)
		calm(what)
	}
}
