package keysource_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/internal/keysource"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/redisstore/rueidis"
)

func open(t *testing.T, url string) *rueidis.Client {
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

func inRedis(t *testing.T, client redisstore.Client, hash string) identity.Lookup {
	t.Helper()
	lookup, err := keysource.NewRedis(client, hash)
	if err != nil {
		t.Fatal(err)
	}
	return lookup
}

// within looks a key up with patience for a busy machine.
func within(t *testing.T, lookup identity.Lookup) (identity.Key, bool, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return lookup(ctx, sum)
}

func TestWhatAHashHolds(t *testing.T) {
	s := redistest.Start(t)
	hash, field := s.Prefix+"keys", hex.EncodeToString(sum[:])
	lookup := inRedis(t, open(t, s.URL()), hash)
	if key, is, err := within(t, lookup); is || err != nil {
		t.Errorf("no hash: %v, %v, %v", key, is, err)
	}
	s.MustDo("HSET", hash, strings.ToUpper(field), `{"id":"upper"}`)
	if key, is, err := within(t, lookup); is || err != nil {
		t.Errorf("no field: %v, %v, %v", key, is, err)
	}
	s.MustDo("HSET", hash, field, `{"id":"acme","plan":"pro","expires":"2027-01-31T00:00:00Z"}`)
	want := identity.Key{ID: "acme", Plan: "pro", Expires: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)}
	if key, is, err := within(t, lookup); !is || err != nil || key != want {
		t.Errorf("%v, %v, %v", key, is, err)
	}
	for value, says := range map[string]string{
		"":                                "not as it must be",
		"s3cret":                          "not as it must be",
		`{"id":"a","expires":"tomorrow"}`: "no instant",
		strings.Repeat(" ", 17<<10):       "larger",
	} {
		s.MustDo("HSET", hash, field, value)
		key, is, err := within(t, lookup)
		if is || err == nil {
			t.Errorf("%.20s: %v, %v", value, key, is)
		}
		discreet(t, err, hash, says)
	}
	s.MustDo("DEL", hash)
	s.MustDo("SET", hash, "s3cret")
	_, is, err := within(t, lookup)
	if is || err == nil {
		t.Errorf("no hash but a text: %v", is)
	}
	discreet(t, err, hash, "WRONGTYPE")
	if _, err := keysource.NewRedis(nil, ""); err == nil {
		t.Error("a hash without a name is taken")
	}
}

// A server that goes away leaves the last answers in force, and is asked again when it is back.
func TestKeysInRedisOutliveTheServer(t *testing.T) {
	s := redistest.StartOwn(t)
	s.MustDo("HSET", "keys", hex.EncodeToString(sum[:]), `{"id":"acme"}`)
	now := time.Unix(1_800_000_000, 0)
	ring, err := identity.NewCached(inRedis(t, open(t, s.URL()), "keys"), identity.CachedOptions{
		Timeout: 10 * time.Second, Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	proves(t, ring, "k", identity.Who{ID: "api_key:acme"})
	s.Kill()
	now = now.Add(identity.DefaultKeyTTL)
	proves(t, ring, "k", identity.Who{ID: "api_key:acme"})
	if got := ring.Stats(); got.Failed != 1 || got.Problem == nil {
		t.Errorf("%+v", got)
	}
	s.Restart() // it kept nothing
	redistest.Until(t, 10*time.Second, func() error {
		now = now.Add(time.Second)
		if _, is, err := ring.Find(t.Context(), sum); is || err != nil {
			return fmt.Errorf("still known: %v; %+v", err, ring.Stats())
		}
		return nil
	})
	proves(t, ring, "k", identity.Who{})
}

// routed remembers the key that the last call was sent by.
type routed struct {
	redisstore.Client
	by string
}

func (r *routed) Do(ctx context.Context, key string, args ...string) (any, error) {
	r.by = key
	return r.Client.Do(ctx, key, args...)
}

// In a cluster a hash is asked for where it lives, not wherever and then elsewhere.
func TestAHashIsAskedForWhereItLives(t *testing.T) {
	s := redistest.Start(t)
	client := &routed{Client: open(t, s.URL())}
	if _, _, err := within(t, inRedis(t, client, s.Prefix+"keys")); err != nil || client.by != s.Prefix+"keys" {
		t.Errorf("by %q, %v", client.by, err)
	}
}
