package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/storetest"
)

type raw struct{ s *redistest.Server }

func (r raw) Do(ctx context.Context, key string, args ...string) (any, error) {
	v, err := r.s.Do(args...)
	var e redistest.Error
	if errors.As(err, &e) {
		err = redisstore.ServerError(e)
	}
	return v, err
}
func (r raw) Cluster() bool { return false }
func (r raw) Close()        {}

// open is a store on a server of its own, at the instants that now says.
func open(t *testing.T, now func() time.Time) *redisstore.Store {
	t.Helper()
	return openOn(t, redistest.Start(t), redisstore.Options{Now: now})
}

func openOn(t *testing.T, server *redistest.Server, o redisstore.Options) *redisstore.Store {
	t.Helper()
	o.Timeout = 5 * time.Second
	s, err := redisstore.New(raw{server}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	server := redistest.Start(t)
	storetest.Run(t, func(t *testing.T, now func() time.Time) comporta.Store {
		if _, err := server.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		return openOn(t, server, redisstore.Options{Now: now})
	})
}
