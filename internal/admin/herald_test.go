package admin

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// Each override is told of when it begins and when it ends, once.
func TestOverridesAreHeralded(t *testing.T) {
	h := newHouse(t)
	synctest.Test(t, func(t *testing.T) {
		log := new(buffer)
		herald := NewHerald(func() *policy.Engine { return h.engine }, slog.New(slog.NewTextHandler(log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go herald.Run(ctx)
		told := func(want ...string) {
			t.Helper()
			synctest.Wait()
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			if len(lines) != len(want) {
				t.Errorf("want %d lines:\n%s", len(want), log)
				return
			}
			for i, w := range want {
				if !strings.Contains(lines[i], w) {
					t.Errorf("want %q in %q", w, lines[i])
				}
			}
		}
		all := []string{`msg="an override begins" who=api_key:early limits="requests: 7/min"`}
		told(all...)

		who, err := h.cfg.Who("api_key:acme")
		if err != nil {
			t.Fatal(err)
		}
		until := now().Add(90*time.Minute + 7*time.Second)
		limits := map[string]comporta.Limit{"requests": {Limit: 9, Window: time.Minute}}
		if err := h.engine.SetOverrides([]*policy.Override{{Who: who, Limits: limits, Until: until, Reason: "a test"}}); err != nil {
			t.Fatal(err)
		}
		herald.Changed()
		herald.Changed()
		all = append(all, `msg="an override begins" who=api_key:acme`)
		told(all...)
		time.Sleep(90 * time.Minute)
		told(all...)
		time.Sleep(7 * time.Second)
		all = append(all, fmt.Sprintf(`msg="an override has ended" who=api_key:acme limits="requests: 9/min" until=%s reason="a test" why="its last day is over"`, until.Format(time.RFC3339)))
		told(all...)
		time.Sleep(24 * time.Hour)
		told(all...)

		h.load(strings.Split(policyText, "overrides:")[0])
		herald.Changed()
		told(append(all, `why="it was removed"`)...)
	})
}
