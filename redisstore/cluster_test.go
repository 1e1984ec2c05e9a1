package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/redisstore/rueidis"
	"github.com/comporta/comporta/storetest"
)

// dial is a client of a real one, by its address.
func dial(t *testing.T, url string) redisstore.Client {
	t.Helper()
	address, err := redisstore.ParseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rueidis.Open(address, rueidis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// stores opens stores under prefixes of their own, as no flush reaches all servers.
func stores(client redisstore.Client) storetest.Open {
	n := 0
	return func(t *testing.T, now func() time.Time) comporta.Store {
		n++
		s, err := redisstore.New(client, redisstore.Options{Prefix: fmt.Sprintf("run%d", n), Now: now, Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

func TestConformanceInACluster(t *testing.T) {
	storetest.RunApart(t, stores(dial(t, redistest.StartCluster(t).URL())))
}

func TestConformanceBySentinels(t *testing.T) {
	storetest.Run(t, stores(dial(t, redistest.StartSentinel(t).URL())))
}
