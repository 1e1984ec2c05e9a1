package gateway

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
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
		names := slices.DeleteFunc(slices.Collect(maps.Keys(r.Header)), func(name string) bool { return !strings.HasPrefix(name, "X") && name != "Accept_encoding" })
		slices.Sort(names)
		seen.Store(names)
	})
	fields := func(names ...string) (sent []string) {
		for _, name := range names {
			sent = append(sent, name, "9.9.9.9")
		}
		return sent
	}
	sent := fields("X_Forwarded_For", "X-Forwarded_Host", "X_Real_IP", "X_API_Key", "X.API.Key", "X|Real~IP", "X_Other", "Accept_Encoding", "X-User_Token",
		"X-Original-URL", "X-Rewrite-URL", "X_Original_URL", "X-Forwarded-Server", "X-Api-Key")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	policy := "limits: [{name: a, per: [{header: X-API-Key}, user], limit: 1000/s}]"
	token := "user: {jwt: {secret_file: " + secret + ", issuer: a, audience: a, algorithms: [HS256], header: X-User-Token}}"
	ours := []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

	h := serve(t, up, "identities: {"+token+"}\n"+policy, nil)
	get(t, client(t), h.url+"/", sent...)
	if diff := cmp.Diff(append([]string{"X-Api-Key"}, append(ours, "X_other")...), seen.Load()); diff != "" {
		t.Errorf("from a stranger (-want +got):\n%s", diff)
	}

	h = serve(t, up, "identities: {address: {trusted_proxies: [127.0.0.1/32]}, "+token+"}\n"+policy, nil)
	get(t, client(t), h.url+"/", sent...)
	want := append([]string{"X-Api-Key"}, append(ours, "X-Forwarded-Server", "X-Original-Url", "X-Rewrite-Url", "X_other")...)
	if diff := cmp.Diff(want, seen.Load()); diff != "" {
		t.Errorf("from a trusted proxy (-want +got):\n%s", diff)
	}
}

// Where the policy goes by Forwarded, the upstream is told by it too: a trusted
// peer's elements with ours behind them, a stranger's not.
func TestForwardedGoesOnWhereItIsChosen(t *testing.T) {
	var seen atomic.Value
	up := api(t, func(_ http.ResponseWriter, r *http.Request) {
		seen.Store([2]string{r.Header.Get("Forwarded"), r.Header.Get("X-Forwarded-For")})
	})
	const policy = "limits: [{name: a, per: address, limit: 1000/s}]"
	for name, test := range map[string]struct{ trusted, want string }{
		"from a stranger":      {"10.0.0.0/8", ""},
		"from a trusted proxy": {"127.0.0.1/32", `for=203.0.113.7;proto=https, for="[2001:db8::1]", `},
	} {
		h := serve(t, up, "identities: {address: {header: Forwarded, trusted_proxies: ["+test.trusted+"]}}\n"+policy, nil)
		get(t, client(t), h.url+"/", "Forwarded", "for=203.0.113.7;proto=https", "Forwarded", `for="[2001:db8::1]"`, "X-Forwarded-For", "9.9.9.9")
		own := `for=127.0.0.1;host="` + h.Addr().String() + `";proto=http`
		if got := seen.Load().([2]string); got[0] != test.want+own || got[1] != "127.0.0.1" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
