package chaos

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
)

// Of 1,000 units a tenth may lie in leases, and a fifth of that with each gateway.
const (
	leased = 1000
	held   = leased / 10 / members
)

// leaseFails: a gateway dies while it holds units. They are lost, and no other
// is let through for them.
func leaseFails(t *testing.T, r *report) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	f := startFleet(t, server.URL(), server.Prefix, patient)
	const name = "a gateway killed that holds leases; limit 1,000"
	t.Run("nothing", func(t *testing.T) {
		all := undisturbed(t, func(try int) answers { return f.spend(t, fmt.Sprint("198.51.100.", try), func() {}) })
		if passed := all.count(http.StatusOK); passed != leased {
			t.Errorf("%d passed, want %d", passed, leased)
		}
	})
	t.Run(name, func(t *testing.T) {
		calls := evals(server)
		dead := f.gateways[members-1]
		asked := f.answered.Load()
		all := f.spend(t, "203.0.113.1", func() {
			if calls = evals(server) - calls; int64(calls) > (f.answered.Load()-asked)/2 {
				t.Errorf("%d calls of the store for %d requests: there are no leases", calls, f.answered.Load()-asked)
			}
			dead.kill()
		})
		passed := all.count(http.StatusOK)
		if least := leased - held - all.lost(); passed < least {
			t.Errorf("%d passed, want %d: it held %d at most", passed, least, held)
		}
		if passed > leased && len(all.byStore()) == len(all) {
			t.Errorf("%d passed, want %d at most", passed, leased)
		}
		if n := all.count(http.StatusBadGateway); n > 64 {
			t.Errorf("%d requests were lost: more than there are connections", n)
		}
		f.gateways = f.gateways[:members-1]
		f.await(t, 5*time.Second, fmt.Sprintf("store: up, instances %d", members-1))
		r.rows = append(r.rows, row{name, fmt.Sprintf("limit, and at worst %d less, and those under way", held), [4]string{strconv.Itoa(passed), "–", "–", "–"}})
	})
}

// spend uses up the budget of a client under load; when half is used, it lets
// something happen. Idle units are waited for. Whose answer was lost with its
// gateway may have had a unit, beside those that the gateway held.
func (f *fleet) spend(t *testing.T, client string, half func()) answers {
	t.Helper()
	load := f.stream(500, same("/lease/", client))
	passed := func() int { return load.soFar().count(http.StatusOK) }
	lost := func() int { return load.soFar().lost() }
	await := func(bound time.Duration, enough func() bool) {
		t.Helper()
		redistest.Until(t, bound, func() error {
			if !enough() {
				return fmt.Errorf("%d of %d answers passed, %d were lost", passed(), len(load.soFar()), lost())
			}
			return nil
		})
	}
	await(20*time.Second, func() bool { return passed() >= leased/2 })
	half()
	// What lies idle comes back within a second.
	await(20*time.Second, func() bool { return passed()+lost() >= leased-held })
	end := time.Now().Add(2 * time.Second)
	await(5*time.Second, func() bool { return passed() >= leased || time.Now().After(end) })
	all := load.stop()
	all.only(t, "/lease/", http.StatusOK, http.StatusTooManyRequests, http.StatusBadGateway)
	return all
}

var evalCalls = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`)

// evals is how many scripts a server has run.
func evals(server *redistest.Server) (n int) {
	found := evalCalls.FindStringSubmatch(server.MustDo("INFO", "commandstats").(string))
	if found == nil {
		return 0
	}
	n, _ = strconv.Atoi(found[1])
	return n
}
