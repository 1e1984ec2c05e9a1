package gateway

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Fields that some upstreams read for those that limits go by, or in place of the
// path, must not come from a stranger.
func TestNoOtherSpellingOfAFieldIsPassedOn(t *testing.T) {
	var seen atomic.Value
	up := api(t, func(_ http.ResponseWriter, r *http.Request) {
		names := slices.DeleteFunc(slices.Collect(maps.Keys(r.Header)), func(name string) bool { return !strings.HasPrefix(name, "X") })
		slices.Sort(names)
		seen.Store(names)
	})
	fields := func(names ...string) (sent []string) {
		for _, name := range names {
			sent = append(sent, name, "9.9.9.9")
		}
		return sent
	}
	sent := fields("X_Forwarded_For", "X-Forwarded_Host", "X_Real_IP", "X_API_Key", "X_Other",
		"X-Original-URL", "X-Rewrite-URL", "X_Original_URL", "X-Forwarded-Server", "X-Api-Key")
	const policy = "limits: [{name: a, per: {header: X-API-Key}, limit: 1000/s}]"
	ours := []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

	h := serve(t, up, policy, nil)
	get(t, client(t), h.url+"/", sent...)
	if diff := cmp.Diff(append([]string{"X-Api-Key"}, append(ours, "X_other")...), seen.Load()); diff != "" {
		t.Errorf("from a stranger (-want +got):\n%s", diff)
	}

	h = serve(t, up, "identities: {address: {trusted_proxies: [127.0.0.1/32]}}\n"+policy, nil)
	get(t, client(t), h.url+"/", sent...)
	want := append([]string{"X-Api-Key"}, append(ours, "X-Forwarded-Server", "X-Original-Url", "X-Rewrite-Url", "X_other")...)
	if diff := cmp.Diff(want, seen.Load()); diff != "" {
		t.Errorf("from a trusted proxy (-want +got):\n%s", diff)
	}
}
