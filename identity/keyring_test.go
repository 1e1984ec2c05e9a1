package identity_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta/identity"
)

func TestKeysAreFoundBySum(t *testing.T) {
	keys := []identity.Key{keyOf("acme", "pro", "old"), keyOf("acme", "pro", "new"), keyOf("zebra", "", "z")}
	keys[0].Expires = time.Unix(1, 0) // a table knows no time
	table := keysOf(t, keys...)
	keys[2].ID = "changed"
	for secret, want := range map[string]string{"old": "acme", "new": "acme", "z": "zebra", "x": "", "": ""} {
		sum := sha256.Sum256([]byte(secret))
		k, found, err := table.Find(t.Context(), sum)
		if err != nil || found != (want != "") || k.ID != want || !table.Known(sum) {
			t.Errorf("%s: %v, %v, %v", secret, k, found, err)
		}
	}
	if table.Len() != 3 {
		t.Error(table.Len())
	}
}

// Sums that begin in the same way are told apart by their ends.
func TestSumsThatBeginInTheSameWay(t *testing.T) {
	var keys []identity.Key
	for i := range 5 {
		k := identity.Key{ID: fmt.Sprint("id-", i), Sum: sha256.Sum256([]byte("k"))}
		k.Sum[31] += byte(i)
		keys = append(keys, k)
	}
	table := keysOf(t, keys[1:]...)
	for i, k := range keys {
		found, is, _ := table.Find(t.Context(), k.Sum)
		if is != (i > 0) || is && found != k {
			t.Errorf("%d: %v, %v", i, found, is)
		}
	}
}

func TestTablesThatAreRefused(t *testing.T) {
	secret := keyOf("acme", "pro", "s3cret")
	with := func(id, plan string) identity.Key { return identity.Key{ID: id, Plan: plan, Sum: secret.Sum} }
	for name, c := range map[string]struct {
		keys []identity.Key
		says string
	}{
		"no id":                {[]identity.Key{with("", "")}, "empty"},
		"a long id":            {[]identity.Key{with(strings.Repeat("a", identity.MaxID+1), "")}, "129 bytes"},
		"a line end":           {[]identity.Key{with("a\nb", "")}, "printed"},
		"no UTF-8":             {[]identity.Key{with("a\xff", "")}, "printed"},
		"what was no UTF-8":    {[]identity.Key{with("a\ufffd", "")}, "printed"},
		"a mark of direction":  {[]identity.Key{with("a\u202e", "")}, "printed"},
		"a wide blank":         {[]identity.Key{with("a\u00a0b", "")}, "printed"},
		"a blank at the end":   {[]identity.Key{with("acme ", "")}, "blank"},
		"a plan with a tab":    {[]identity.Key{with("acme", "a\tb")}, `the plan of "acme"`},
		"no key":               {[]identity.Key{{ID: "acme"}}, `"acme" has no key`},
		"an empty key":         {[]identity.Key{keyOf("acme", "", "")}, `"acme" has no key`},
		"one key, two clients": {[]identity.Key{secret, keyOf("x", "", "x"), with("other", "pro")}, `"acme" and "other" have the same key`},
		"the same line twice":  {[]identity.Key{secret, secret}, `a key of "acme" is listed twice`},
		"one id, two plans":    {[]identity.Key{secret, keyOf("acme", "", "x")}, `the keys of "acme" have two plans, pro and none`},
	} {
		_, err := identity.NewKeys(c.keys)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), fmt.Sprintf("%x", secret.Sum)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []string{"a", "org:7", "Müller & Söhne", "a/b=c", strings.Repeat("a", identity.MaxID), "everyone", "address:192.0.2.1"} {
		if _, err := identity.NewKeys([]identity.Key{with(id, "")}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}
