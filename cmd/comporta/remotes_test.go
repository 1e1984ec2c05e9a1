package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/identity"
)

// A source that fails is told of once, however long it does, and once more when it
// is back.
func TestSourcesThatFailAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("it is down")
		ring, err := identity.NewCached(func(context.Context, [32]byte) (identity.Key, bool, error) {
			return identity.Key{}, false, down
		}, identity.CachedOptions{})
		if err != nil {
			t.Fatal(err)
		}
		log := new(bytes.Buffer)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		remotes := (&setup{cfg: new(config.Config), ring: ring}).remotes()
		go func() {
			defer close(ended)
			watch(ctx, remotes, slog.New(slog.NewTextHandler(log, nil)))
		}()
		said := func(want ...string) {
			t.Helper()
			for range 3 {
				if _, _, err := ring.Find(t.Context(), [32]byte{1}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(lookEvery)
			}
			synctest.Wait()
			lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
			if len(lines) != len(want) {
				t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), log)
			}
			for i := range want {
				if !strings.Contains(lines[i], want[i]) {
					t.Errorf("%s\nwant %s", lines[i], want[i])
				}
			}
		}
		said(`source="API keys" error="it is down"`)
		down = nil
		said(`error="it is down"`, `can be asked again" source="API keys"`)
		stop()
		<-ended
	})
}

// Look-ups that fail are counted for as long as the process lives, and /readyz tells
// of the source until it answers, or another one does.
func TestLookupsThatFailAreCounted(t *testing.T) {
	const policy = "identities: {api_key: {header: X-API-Key, keys: {url: %q}}}\nlimits:\n  - {name: a, per: [api_key, address], limit: 100/h}\n"
	source := func(status int, answer string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, answer)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	down := source(500, "")
	s := serveFile(t, fmt.Sprintf(policy, down))
	tells := func(failures int, readyz string) {
		t.Helper()
		_, metrics := fetch(t, s.metrics+"/metrics")
		if line := fmt.Sprintf("\ncomporta_credential_lookup_failures_total{source=\"api_key\"} %d\n", failures); !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", line)
		}
		if res, text := fetch(t, s.metrics+"/readyz"); res.StatusCode != http.StatusOK || text != readyz {
			t.Errorf("%d %q, want %q", res.StatusCode, text, readyz)
		}
	}
	const trouble = "ready\ncredentials: API keys cannot be asked for; the log says why\n"
	tells(0, "ready\n")
	s.show(t, "a-long-key-of-acme-1234")
	s.show(t, "a-long-key-of-beta-1234")
	tells(2, trouble)

	up := upstreamIn(t, s.file)
	s.write(t, up, fmt.Sprintf(policy+"  - {name: b, per: address, limit: 100/h}\n", down))
	s.await(t, "the policy was reloaded", 1)
	tells(2, trouble) // the source is the same

	s.write(t, up, fmt.Sprintf(policy, source(200, `{"id": "acme"}`)))
	s.await(t, "the policy was reloaded", 2)
	s.show(t, "a-long-key-of-acme-1234")
	tells(2, "ready\n")

	s.write(t, up, "limits:\n  - {name: a, per: address, limit: 100/h}\n")
	s.await(t, "the policy was reloaded", 3)
	tells(2, "ready\n")
}
