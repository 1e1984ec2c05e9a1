package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
)

// In a cluster the ledger lies in its key's slot, whatever the identity.
func TestLeasesInACluster(t *testing.T) {
	client := dial(t, redistest.StartCluster(t).URL())
	rule := leased(t, hourly(1000), comporta.Lease{Size: 50, TTL: time.Minute})
	open := func() *redisstore.Store {
		s, err := redisstore.New(client, redisstore.Options{Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := open()
	key := func(i int) comporta.Key {
		return comporta.Key{Limit: "requests", Identity: fmt.Sprintf("{cli}ent }%d", i)}
	}
	for i := range 100 {
		for range 5 {
			if d, err := s.TakeOne(t.Context(), key(i), rule, 1); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			s.Quiet()
		}
	}
	if st := s.Stats().Leases; st.Granted != 100 || st.Served != 400 {
		t.Errorf("got %+v", st)
	}
	s.Close()
	other := open()
	for i := range 100 {
		if d, err := other.TakeOne(t.Context(), key(i), rule, 0); err != nil || d.Remaining != 995 {
			t.Errorf("%v: %+v, %v", key(i), d, err)
		}
	}
}
