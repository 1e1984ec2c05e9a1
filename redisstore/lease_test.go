package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
)

func leased(t *testing.T, l comporta.Limit, lease comporta.Lease) *comporta.Rule {
	t.Helper()
	l.Name, l.Lease = "requests", &lease
	rule, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func TestLeaseServesWithoutAsking(t *testing.T) {
	server := redistest.Start(t)
	s := openOn(t, server, redisstore.Options{})
	rule := leased(t, comporta.Limit{Limit: 100_000, Window: time.Minute}, comporta.Lease{Size: 100})
	key := comporta.Key{Limit: "requests", Identity: "a"}
	var wg sync.WaitGroup
	start := time.Now()
	const each = 20_000
	for range 4 {
		wg.Go(func() {
			for range each {
				if d, err := s.TakeOne(context.Background(), key, rule, 1); err != nil || !d.Allowed {
					t.Error(d, err)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%v each, %+v", time.Since(start)/(4*each), s.Stats())
	plain, _ := comporta.Limit{Name: "requests", Limit: 100_000, Window: time.Minute}.Compile()
	d, err := s.TakeOne(context.Background(), key, plain, 0)
	t.Logf("%+v %v", d, err)
}
