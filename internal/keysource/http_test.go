package keysource_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/internal/keysource"
)

var sum = sha256.Sum256([]byte("k"))

// serve is a server's URL, with what follows its host.
func serve(t *testing.T, after string, h http.HandlerFunc) *url.URL {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return parse(t, s.URL+after)
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func overHTTP(t *testing.T, u *url.URL, o keysource.HTTPOptions) identity.Lookup {
	t.Helper()
	lookup, err := keysource.NewHTTP(u, o)
	if err != nil {
		t.Fatal(err)
	}
	return lookup
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHowAServerIsAsked(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "t0ken\n")
	for after, uri := range map[string]string{
		"":              "/?sha256=%x",
		"/find":         "/find?sha256=%x",
		"/find?":        "/find?sha256=%x",
		"/find?a=%2F&b": "/find?a=%%2F&b&sha256=%x",
	} {
		var got string
		u := serve(t, after, func(w http.ResponseWriter, r *http.Request) {
			got = fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, r.Header["Authorization"])
			fmt.Fprint(w, `{"id": "acme", "plan": "pro", "expires": "2027-01-31T12:00:00+01:00", "more": [1]}`)
		})
		lookup := overHTTP(t, u, keysource.HTTPOptions{TokenFile: token})
		key, is, err := lookup(t.Context(), sum)
		if !is || err != nil || key.ID != "acme" || key.Plan != "pro" || !key.Expires.Equal(time.Date(2027, 1, 31, 11, 0, 0, 0, time.UTC)) {
			t.Errorf("%v, %v, %v", key, is, err)
		}
		if want := fmt.Sprintf("GET "+uri+" [Bearer t0ken]", sum); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestWhatAServerAnswers(t *testing.T) {
	elsewhere := serve(t, "", func(w http.ResponseWriter, r *http.Request) {
		t.Error("a redirect was followed")
	})
	for _, c := range []struct {
		status   int
		body     string
		id, says string
	}{
		{200, `{"id":"acme"}`, "acme", ""},
		{200, `{"id":"acme","plan":null,"expires":null}`, "acme", ""},
		{404, `{"id":"acme"}`, "", ""},
		{404, "", "", ""},
		{200, "", "", "not as it must be"},
		{200, "s3cret", "", "not as it must be"},
		{200, `{"id":7}`, "", "not as it must be"},
		{200, `{"id":"acme"}{}`, "", "not as it must be"},
		{200, `{"id":"acme","expires":"s3cret"}`, "", "no instant"},
		{200, `{"id":"acme","expires":"2027-01-31"}`, "", "no instant"},
		{200, `{"id":"` + strings.Repeat("a", 16<<10) + `"}`, "", "larger"},
		{204, "", "", "204"},
		{301, "", "", "redirects"},
		{307, "", "", "redirects"},
		{401, "s3cret", "", "401"},
		{410, "", "", "410"},
		{500, "s3cret", "", "500"},
	} {
		u := serve(t, "/find?operator=s3cret", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", elsewhere.String())
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		})
		key, is, err := overHTTP(t, u, keysource.HTTPOptions{})(t.Context(), sum)
		if is != (c.id != "") || key.ID != c.id || (err != nil) != (c.says != "") {
			t.Errorf("%d %.30s: %v, %v, %v", c.status, c.body, key, is, err)
		}
		discreet(t, err, u.Host, c.says)
	}
}

// discreet holds that an error says where and what, and shows nothing secret.
func discreet(t *testing.T, err error, says ...string) {
	t.Helper()
	if err == nil {
		return
	}
	for _, what := range says {
		if !strings.Contains(err.Error(), what) {
			t.Errorf("%v: it does not say %s", err, what)
		}
	}
	for _, secret := range []string{"s3cret", hex.EncodeToString(sum[:8])} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%v: it shows a secret", err)
		}
	}
}

// An answer without end is not read to it, and one that never comes is not waited for.
func TestServersThatDoNotEnd(t *testing.T) {
	endless := serve(t, "", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	_, is, err := overHTTP(t, endless, keysource.HTTPOptions{})(t.Context(), sum)
	if is || err == nil {
		t.Errorf("%v, %v", is, err)
	}
	discreet(t, err, "larger")
	silent := serve(t, "/?s3cret", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, is, err = overHTTP(t, silent, keysource.HTTPOptions{})(ctx, sum)
	if is || err == nil {
		t.Errorf("%v, %v", is, err)
	}
	discreet(t, err, "deadline")
}

func TestAServerThatIsNotThere(t *testing.T) {
	s := httptest.NewServer(nil)
	u := parse(t, s.URL+"/?s3cret")
	s.Close()
	_, is, err := overHTTP(t, u, keysource.HTTPOptions{})(t.Context(), sum)
	if is || err == nil {
		t.Errorf("%v, %v", is, err)
	}
	discreet(t, err, u.Host, "refused")
}

func TestTheTokenIsReadAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	for _, none := range []string{"", " \n", "s3cret s3cret", "s3cret\ns3cret", "s3cret\x00", strings.Repeat("s3cret", 2000)} {
		write(t, path, none)
		_, err := keysource.NewHTTP(parse(t, "https://keys.example.com"), keysource.HTTPOptions{TokenFile: path})
		if err == nil {
			t.Errorf("%.20q is taken", none)
		}
		discreet(t, err, path)
	}
	var got string
	u := serve(t, "", func(w http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization"); w.WriteHeader(404) })
	write(t, path, "one")
	lookup := overHTTP(t, u, keysource.HTTPOptions{TokenFile: path})
	for _, token := range []string{"one", "two"} {
		write(t, path, token)
		if _, _, err := lookup(t.Context(), sum); err != nil || got != "Bearer "+token {
			t.Errorf("%s, %v", got, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, is, err := lookup(t.Context(), sum); is || err == nil {
		t.Errorf("without its token: %v, %v", is, err)
	}
}

func TestURLsThatAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"http://keys.example.com/":                  "https",
		"ftp://keys.example.com/":                   "https",
		"keys.example.com/find":                     "host",
		"https://:8080/":                            "host",
		"https://me:s3cret@keys.example.com/":       "password",
		"https://keys.example.com/#a":               "fragment",
		"https://keys.example.com/?a=1&sha256=07cf": "sha256",
	} {
		_, err := keysource.NewHTTP(parse(t, text), keysource.HTTPOptions{})
		if err == nil {
			t.Errorf("%s is taken", text)
		}
		discreet(t, err, says)
	}
	for _, text := range []string{"https://keys.example.com/find?a=b", "http://localhost:1/", "http://[::1]/", "http://127.0.0.2:80/"} {
		if _, err := keysource.NewHTTP(parse(t, text), keysource.HTTPOptions{}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// From the request to the server and back: a key is asked for once, and so is one
// that is unknown; connections are used again.
func TestKeysOverHTTPAreProved(t *testing.T) {
	var calls, connections atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if r.FormValue("sha256") != hex.EncodeToString(sum[:]) {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"id":"acme","plan":"pro"}`)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	ring, err := identity.NewCached(overHTTP(t, parse(t, s.URL), keysource.HTTPOptions{}), identity.CachedOptions{TTL: time.Hour, UnknownTTL: time.Hour, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	proves(t, ring, "k", identity.Who{ID: "api_key:acme", Plan: "pro"})
	for i := range 20 {
		for range 3 {
			proves(t, ring, fmt.Sprint("random", i), identity.Who{})
			proves(t, ring, "k", identity.Who{ID: "api_key:acme", Plan: "pro"})
		}
	}
	if calls.Load() != 21 || connections.Load() != 1 {
		t.Errorf("%d calls over %d connections", calls.Load(), connections.Load())
	}
}

func proves(t *testing.T, ring identity.Keyring, key string, want identity.Who) {
	t.Helper()
	a, err := identity.NewAPIKey(identity.Places{Bearer: true})
	if err != nil {
		t.Fatal(err)
	}
	a.Use(ring)
	r := &identity.Request{Header: map[string][]string{"Authorization": {"Bearer " + key}}}
	who, shown, err := a.Prove(t.Context(), r)
	if who != want || shown != (want.ID != "") || shown != (err == nil) {
		t.Errorf("%s: %v, %v, %v", key, who, shown, err)
	}
}
