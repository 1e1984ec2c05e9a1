package probe

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A field Host says which host is meant, as with other clients.
func TestHost(t *testing.T) {
	var host string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { host = req.Host }))
	defer server.Close()
	target := Target{Method: "GET", URL: server.URL}
	target.Identify(http.Header{"Host": {"api.test"}}, nil)
	if shot := NewSender(target, nil).Send(t.Context(), &Request{}); shot.Status != 200 || host != "api.test" {
		t.Error(shot.Status, host)
	}
}

// Who gives the same identity twice learns nothing of isolation, and nothing wrong.
func TestTheSameIdentityTwice(t *testing.T) {
	same := func() http.Header { return http.Header{"X-Api-Key": {"k1"}} }
	p := &prober{options: Options{Target: Target{Identities: []http.Header{same(), same()}}}}
	if c, err := p.isolation(); err != nil || c.Verdict != Unknown {
		t.Error(c, err)
	}
}

func TestTheURLAsItIsShown(t *testing.T) {
	target := Target{URL: "http://a:hush@api.test/x?key=hush#hush"}
	if got := target.shown(); got != "http://api.test/x?…" {
		t.Error(got)
	}
}
