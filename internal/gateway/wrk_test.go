package gateway

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// wrk, a load generator that knows nothing of this house, counts how many of its
// requests are let through.
func TestWrkGetsExactlyTheLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("loads the machine for two seconds")
	}
	if _, err := exec.LookPath("wrk"); err != nil {
		t.Fatal("wrk is not installed: apt-get install wrk (or go test -short)")
	}
	// The clock stands still, so no window ends meanwhile.
	h := serve(t, api(t, hello), "limits: [{name: a, per: address, limit: 500/24h, algorithm: fixed_window}]", newClock())
	out, err := exec.Command("wrk", "-t1", "-c5", "-d2s", h.url+"/").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	total, refused := counted(t, out, `(\d+) requests in`), counted(t, out, `Non-2xx or 3xx responses: (\d+)`)
	// Wrk does not count what is in flight when its time is over; all that passes
	// has passed long before.
	if total-refused != 500 {
		t.Errorf("%d of %d passed, want 500:\n%s", total-refused, total, out)
	}
}

func counted(t *testing.T, out []byte, pattern string) int {
	t.Helper()
	found := regexp.MustCompile(pattern).FindSubmatch(out)
	if found == nil {
		t.Fatalf("wrk does not tell %s:\n%s", pattern, out)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
