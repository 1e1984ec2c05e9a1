package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
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
