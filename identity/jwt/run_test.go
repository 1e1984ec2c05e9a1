package jwt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta/identity"
)

// A publisher is an issuer's web server, over TLS.
type publisher struct {
	*httptest.Server
	answer atomic.Pointer[http.HandlerFunc]
	asked  atomic.Int64
}

func publish(t testing.TB, keys string) *publisher {
	p := &publisher{}
	p.say(200, keys)
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		(*p.answer.Load())(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *publisher) say(status int, body string) {
	p.do(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
}

func (p *publisher) do(h http.HandlerFunc) { p.answer.Store(&h) }

func (p *publisher) source(t testing.TB, change func(*Options)) *Source {
	t.Helper()
	o := options(t)
	u, err := url.Parse(p.URL + "/jwks.json?token=hush")
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.Transport = u, p.Client().Transport
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs the source until the test ends or stop is called.
func run(t testing.TB, s *Source) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	until(t, "it runs", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.running
	})
	return stop
}

// until waits for a condition, for a while.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in 10 s: %s", what)
		}
	}
}

func signedWith(t testing.TB, i *issuer, kid string) *identity.Request {
	return bearer(sign(t, "ES256", i.ec, fmt.Sprintf(`{"alg":"ES256","kid":%q}`, kid), valid("alice")))
}

// The issuer begins to sign with a new key: its first token is proved, and so is the
// last of the old key as long as that is published.
func TestRotation(t *testing.T) {
	old, next := ours(), theirs()
	oldKey, nextKey := ecKey(t, &old.ec.PublicKey, `,"kid":"2026"`), ecKey(t, &next.ec.PublicKey, `,"kid":"2027"`)
	p := publish(t, set(oldKey))
	at := atomic.Pointer[time.Time]{}
	at.Store(&now)
	s := p.source(t, func(o *Options) { o.Now = func() time.Time { return *at.Load() } })
	refused(t, s, signedWith(t, old, "2026"), errNoKeys)
	run(t, s)
	until(t, "the first keys", func() bool { return s.Stats().Keys == 1 })
	proves(t, s, signedWith(t, old, "2026"), "alice", "pro")

	p.say(200, set(oldKey, nextKey))
	proves(t, s, signedWith(t, next, "2027"), "alice", "pro")
	proves(t, s, signedWith(t, old, "2026"), "alice", "pro")
	if n := p.asked.Load(); n != 2 {
		t.Errorf("the URL was asked %d times, want 2", n)
	}

	// Unknown kids have it asked once in a while only.
	p.say(200, set(nextKey))
	for i := range 100 {
		refused(t, s, signedWith(t, next, fmt.Sprint("made up ", i)), errKey)
	}
	if n := p.asked.Load(); n != 2 {
		t.Errorf("the URL was asked %d times within %v, want 2", n, Ask)
	}
	later := now.Add(Ask)
	at.Store(&later)
	for i := range 100 {
		refused(t, s, signedWith(t, next, fmt.Sprint("made up ", i)), errKey)
	}
	if n := p.asked.Load(); n != 3 {
		t.Errorf("the URL was asked %d times after %v, want 3", n, Ask)
	}
	refused(t, s, signedWith(t, old, "2026"), errKey) // it was proved before: its key is gone
	proves(t, s, signedWith(t, next, "2027"), "alice", "pro")
}

// Only an unknown kid is a reason to ask.
func TestKnownKidsAskNobody(t *testing.T) {
	p := publish(t, set(ecKey(t, &ours().ec.PublicKey, `,"kid":"ec"`)))
	s := p.source(t, nil)
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, s)
	for _, kid := range []string{`,"kid":"ec"`, ``, `,"kid":""`} {
		refused(t, s, bearer(sign(t, "RS256", ours().rsa, `{"alg":"RS256"`+kid+`}`, valid("alice"))), errKey)
	}
	refused(t, s, signedWith(t, theirs(), "ec"), errSignature)
	if n := p.asked.Load(); n != 1 {
		t.Errorf("the URL was asked %d times, want 1", n)
	}
}

func TestOldKeysStayWhileTheURLFails(t *testing.T) {
	p := publish(t, ours().set(t))
	failures := make(chan error, 100)
	s := p.source(t, func(o *Options) { o.OnError = func(err error) { failures <- err } })
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, s)
	p.say(503, "down")
	refused(t, s, bearer(sign(t, "ES256", ours().ec, `{"alg":"ES256","kid":"new"}`, valid("alice"))), errKey)
	if err := <-failures; !strings.Contains(err.Error(), "/jwks.json: it answers 503 instead of 200") || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
	proves(t, s, bearer(ours().token(t, "ES256", valid("alice"))), "alice", "pro")
	if stats := s.Stats(); stats.Keys != 4 || stats.Problem == nil || !stats.Loaded.Equal(now) {
		t.Errorf("stats: %+v", stats)
	}
}

func TestAnswersThatAreNoKeys(t *testing.T) {
	p := publish(t, "")
	elsewhere := publish(t, ours().set(t))
	s, hasty := p.source(t, nil), p.source(t, func(o *Options) { o.Timeout = 50 * time.Millisecond })
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "redirects are not followed"},
		{"no end", func(w http.ResponseWriter, r *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "it is larger than 1048576 bytes"},
		{"silence", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
		{"secrets", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, set(octKey(ours().secret, ""))) }, "it holds no key"},
		{"a page", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>") }, "it is not a JSON Web Key Set"},
		{"a cut", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		}, "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.do(c.answer)
			s := s
			if c.name == "silence" {
				s = hasty
			}
			err := s.Load(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") || !strings.HasPrefix(err.Error(), "the key set https://127.0.0.1:") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if stats := s.Stats(); stats.Keys != 0 || stats.Problem == nil {
				t.Errorf("stats: %+v", stats)
			}
		})
	}
	if n := elsewhere.asked.Load(); n != 0 {
		t.Errorf("the redirect was followed %d times", n)
	}
	p.Close()
	if err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}

func TestACertificateOfNobodyIsRefused(t *testing.T) {
	s := publish(t, ours().set(t)).source(t, func(o *Options) { o.Transport = nil })
	if err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}

func TestBrokenKeysOfAURLAreLeftOut(t *testing.T) {
	p := publish(t, set(`{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA","kid":"off"}`, octKey(ours().secret, ""), ecKey(t, &ours().ec.PublicKey, "")))
	s := p.source(t, nil)
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	proves(t, s, bearer(ours().token(t, "ES256", valid("alice"))), "alice", "pro")
	refused(t, s, bearer(ours().token(t, "HS256", valid("alice"))), errKey)
	if stats := s.Stats(); stats.Keys != 1 || stats.Problem == nil || !strings.Contains(stats.Problem.Error(), `key 1 (kid "off")`) {
		t.Errorf("stats: %+v", stats)
	}
}

// transport answers without a network, so that time may be made up.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRunRefreshesInTime(t *testing.T) {
	keys := ours().set(t)
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Duration
		var down atomic.Bool
		began := time.Now()
		o := options(t)
		o.URL = &url.URL{Scheme: "https", Host: "id.example.com"}
		o.Transport = transport(func(*http.Request) (*http.Response, error) {
			asked = append(asked, time.Since(began))
			if down.Load() {
				return nil, errors.New("the wire is cut")
			}
			w := httptest.NewRecorder()
			w.WriteString(keys)
			return w.Result(), nil
		})
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		time.Sleep(DefaultRefresh + time.Second) // of the bubble
		down.Store(true)
		time.Sleep(DefaultRefresh)
		down.Store(false)
		time.Sleep(DefaultRefresh)
		cancel()
		synctest.Wait()
		want := []time.Duration{0, DefaultRefresh, 2 * DefaultRefresh, 2*DefaultRefresh + Ask, 3*DefaultRefresh + Ask}
		if fmt.Sprint(asked) != fmt.Sprint(want[:len(asked)]) || len(asked) < 4 {
			t.Errorf("asked at %v, want %v", asked, want)
		}
	})
}

// Who waits for keys goes on when the source stops, and when its own time is over.
func TestNobodyWaitsForever(t *testing.T) {
	p := publish(t, ours().set(t))
	s := p.source(t, nil)
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.do(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	stop := run(t, s)
	impatient, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for _, ctx := range []context.Context{t.Context(), impatient} {
		waiting.Go(func() {
			if _, shown, err := s.Prove(ctx, signedWith(t, ours(), "unknown")); shown || !errors.Is(err, identity.ErrUnproved) {
				t.Errorf("%v, %v", shown, err)
			}
		})
	}
	until(t, "asked", func() bool { return p.asked.Load() == 2 })
	cancel()
	stop()
	waiting.Wait()
	refused(t, s, signedWith(t, ours(), "unknown"), errKey)
}

// Run with a file ends at once.
func TestRunWithAFile(t *testing.T) { newSource(t, ours().set(t), nil).Run(t.Context()) }
