package redisstore

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/comporta/comporta/internal/redistest"
)

func TestSecretIsMadeOnce(t *testing.T) {
	s := redistest.Start(t)
	secrets := make([][]byte, 8)
	var all sync.WaitGroup
	for i := range secrets {
		all.Go(func() {
			var err error
			if secrets[i], err = sharedSecret(context.Background(), direct{s}, s.Prefix, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, secret := range secrets {
		if len(secret) != 32 || !bytes.Equal(secret, secrets[0]) {
			t.Fatal("instances have different secrets")
		}
	}
	if ttl := s.MustDo("PTTL", s.Prefix+":secret"); ttl != int64(-1) {
		t.Fatal("the secret expires:", ttl)
	}
	other, err := sharedSecret(t.Context(), direct{s}, s.Prefix+"2", nil)
	if err != nil || bytes.Equal(other, secrets[0]) {
		t.Fatal("two prefixes share a secret:", err)
	}
}

// A fingerprint goes with the last instance that keeps it.
func TestFingerprintExpires(t *testing.T) {
	s := redistest.Start(t)
	mine := []byte("mine")
	for range 2 {
		if _, err := sharedSecret(t.Context(), direct{s}, s.Prefix, mine); err != nil {
			t.Fatal(err)
		}
		if ttl := s.MustDo("PTTL", s.Prefix+":secret").(int64); ttl < 50_000 || ttl > 60_000 {
			t.Fatalf("it expires in %d ms, want about 60,000", ttl)
		}
		s.MustDo("PEXPIRE", s.Prefix+":secret", "5000")
	}
	if err := keepSecret(t.Context(), direct{s}, s.Prefix, mine, true); err != nil {
		t.Fatal(err)
	}
	if ttl := s.MustDo("PTTL", s.Prefix+":secret").(int64); ttl < 50_000 {
		t.Fatalf("it expires in %d ms although it is kept", ttl)
	}
}

func TestSecretsMustAgree(t *testing.T) {
	s := redistest.Start(t)
	first, second := []byte("the first instance's secret"), []byte("the second instance's secret")
	for name, c := range map[string]struct {
		before, after []byte
		want          string
	}{
		"the same":       {first, first, ""},
		"different":      {first, second, "other instances have another secret"},
		"none after one": {first, nil, "this one has none"},
		"one after none": {nil, second, "share a secret made in Redis"},
	} {
		t.Run(name, func(t *testing.T) {
			prefix := s.Prefix + strings.ReplaceAll(name, " ", "-")
			before, err := sharedSecret(t.Context(), direct{s}, prefix, c.before)
			if err != nil {
				t.Fatal(err)
			}
			held := s.MustDo("GET", prefix+":secret").(string)
			if c.before != nil && (strings.Contains(held, string(c.before)) || len(held) > 32) {
				t.Fatal("more than a fingerprint is kept:", held)
			}
			after, err := sharedSecret(t.Context(), direct{s}, prefix, c.after)
			if c.want == "" {
				if err != nil || !bytes.Equal(before, after) {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), prefix+":secret") {
				t.Fatalf("%v, want %q and the key", err, c.want)
			}
			for _, secret := range []string{string(first), string(second), held, strings.TrimPrefix(held, madeSecret)} {
				if strings.Contains(err.Error(), secret) {
					t.Fatal("the error shows a secret:", err)
				}
			}
		})
	}
}

func TestSecretOfAnotherForm(t *testing.T) {
	s := redistest.Start(t)
	for _, held := range []string{"", "hunter2", madeSecret, madeSecret + "hunter2", madeSecret + "!"} {
		s.MustDo("SET", s.Prefix+":secret", held)
		for _, mine := range [][]byte{nil, []byte("mine")} {
			_, err := sharedSecret(t.Context(), direct{s}, s.Prefix, mine)
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: %v", held, err)
			}
		}
	}
	s.MustDo("DEL", s.Prefix+":secret")
	s.MustDo("LPUSH", s.Prefix+":secret", "x")
	if _, err := sharedSecret(t.Context(), direct{s}, s.Prefix, nil); cause(err) != "WRONGTYPE" {
		t.Error(err)
	}
}

func TestSecretIsToldAgain(t *testing.T) {
	s := redistest.Start(t)
	for _, mine := range [][]byte{nil, []byte("mine")} {
		given := mine != nil
		secret, err := sharedSecret(t.Context(), direct{s}, s.Prefix, mine)
		if err != nil {
			t.Fatal(err)
		}
		if err := keepSecret(t.Context(), direct{s}, s.Prefix, secret, given); err != nil {
			t.Fatal(err)
		}
		s.MustDo("DEL", s.Prefix+":secret")
		if err := keepSecret(t.Context(), direct{s}, s.Prefix, secret, given); err != nil {
			t.Fatal(err)
		}
		again, err := sharedSecret(t.Context(), direct{s}, s.Prefix, mine)
		if err != nil || !bytes.Equal(secret, again) {
			t.Fatal("it was not told again:", err)
		}
		s.MustDo("DEL", s.Prefix+":secret")
		if _, err := sharedSecret(t.Context(), direct{s}, s.Prefix, []byte("another")); err != nil {
			t.Fatal(err)
		}
		err = keepSecret(t.Context(), direct{s}, s.Prefix, secret, given)
		if err == nil || !strings.Contains(err.Error(), "restart all instances") {
			t.Fatal(err)
		}
		s.MustDo("DEL", s.Prefix+":secret")
	}
}

func TestSecretThatDoesNotStay(t *testing.T) {
	client := &silent{reply: func() (any, error) { return nil, nil }}
	if _, err := sharedSecret(t.Context(), client, "p", nil); err == nil || !strings.Contains(err.Error(), "does not stay") {
		t.Fatal(err)
	}
}
