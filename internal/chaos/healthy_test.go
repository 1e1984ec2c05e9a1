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

// TestHealthy: whatever the algorithm, five gateways admit the limit, no unit
// more and none less; of several limits too, all or nothing.
func TestHealthy(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	f := startFleet(t, server.URL(), server.Prefix, patient)
	const clients = 5
	for _, path := range []string{"/local/", "/log/", "/counter/", "/bucket/"} {
		got := f.burst(50, clients*2*limit, func(i int) ask { return ask{path: path, client: fmt.Sprint("198.51.100.", i%clients)} })
		got.only(t, path, http.StatusOK, http.StatusTooManyRequests)
		for i := range clients {
			if n := got.of(path, fmt.Sprint("198.51.100.", i)).count(http.StatusOK); n != limit {
				t.Errorf("%s: %d of a client passed, want %d", path, n, limit)
			}
		}
	}
	got := f.burst(50, clients*2*limit, func(i int) ask {
		return ask{path: "/several/", client: fmt.Sprint("198.51.100.", i%clients), tenant: "one for all"}
	})
	got.only(t, "/several/", http.StatusOK, http.StatusTooManyRequests)
	if n := got.count(http.StatusOK); n != 250 {
		t.Errorf("under several limits %d passed, want 250", n)
	}
	for i := range clients {
		if n := got.of("", fmt.Sprint("198.51.100.", i)).count(http.StatusOK); n > limit {
			t.Errorf("under several limits %d of one client passed, want %d at most", n, limit)
		}
	}
}
