package gateway

import (
	"net/http"
	"strings"
	"testing"
)

// A page of another origin reads the gateway's own answers only where they say
// that it may.
func TestAllowedOriginsReadTheGatewaysOwnAnswers(t *testing.T) {
	const origin = "https://app.example.com"
	h := serve(t, "http://127.0.0.1:9", "cors: {origins: ["+origin+"]}\n"+generous, nil,
		func(o *Options) { o.Server.MaxBodyBytes = 10 })
	c := client(t)
	for _, test := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodGet, "/", "", http.StatusBadGateway},
		{http.MethodPost, "/", strings.Repeat("x", 11), http.StatusRequestEntityTooLarge},
		{http.MethodGet, "/a%2Fb", "", http.StatusBadRequest},
	} {
		for _, from := range []string{origin, "https://other.example"} {
			res, text := do(t, c, test.method, h.url+test.path, strings.NewReader(test.body), "Origin", from)
			allowed, exposed := res.Header.Get("Access-Control-Allow-Origin"), res.Header.Get("Access-Control-Expose-Headers")
			if res.StatusCode != test.want || res.Header.Get("Vary") != "Origin" || !strings.HasPrefix(text, `{"title":`) {
				t.Errorf("%s %s: %d, Vary %q, %s", test.method, test.path, res.StatusCode, res.Header.Get("Vary"), text)
			}
			if from == origin && (allowed != origin || !strings.HasSuffix(exposed, "RateLimit-Reset, Retry-After")) {
				t.Errorf("%s %s: allows %q and exposes %q", test.method, test.path, allowed, exposed)
			}
			if from != origin && allowed+exposed != "" {
				t.Errorf("%s %s: allows %q and exposes %q to a stranger", test.method, test.path, allowed, exposed)
			}
		}
	}
}
