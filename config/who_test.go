package config

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

const everyKind = `
identities:
  api_key: {header: X-API-Key, keys: keys.yaml}
  user: {header: X-User, from: [10.0.0.0/8]}
plans: {}
allow: [192.0.2.0/24, {api_key: monitor}, {user: ops}, {header: X-Robot, from: 10.0.0.0/8, value: "1"}]
deny: [2001:db8::/32, {user: mallory}]
limits:
  - {name: requests, per: [api_key, user, address], limit: 100/min}
  - {name: products, per: {header: x-product}, limit: 10/min}
  - {name: logins, match: POST /login, per: {all: [{claimed: username}, address]}, limit: 5/min}
  - {name: items, match: "/items/{id}", per: {path: id}, limit: 5/min}
  - {name: everyone, per: everyone, limit: 1000/s}
overrides:
  - {who: {header: X-Product, value: p1}, limits: {products: 20/min}, through: 2099-12-31, reason: agreed}
  - {who: {address: 10.0.0.0/8}, limits: {requests: 20/min}, through: 2099-12-31, reason: agreed}
`

// A client that is named is the one that requests show, under the secret of the file.
func TestWhoIsNamedIsWhoAsks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("secret_file: secret\n"+strings.TrimSpace(everyKind)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.LoadSecret(); err != nil {
		t.Fatal(err)
	}
	r := &identity.Request{Peer: netip.MustParseAddr("10.0.0.9"), Header: map[string][]string{"X-User": {"alice"}, "X-Product": {"p1"}}}
	for _, said := range []string{"user:alice", "header:x-product=p1", "address:10.0.0.9", "everyone"} {
		listed, err := c.Who(said)
		if err != nil {
			t.Errorf("%s: %v", said, err)
			continue
		}
		if id, ok := listed.Source.Identity(r); !ok || id != listed.Who.ID {
			t.Errorf("%s is %q, and the request shows %q", said, listed.Who.ID, id)
		}
	}
	for said, want := range map[string]string{
		"api_key:acme": "api_key:acme", "claimed:username=alice": "claimed:username:", "path:id=5": "path:id:", "address:2001:db8::7": "address:2001:db8::/64",
		"address:2001:db8::/64": "address:2001:db8::/64", "address:192.0.2.1/32": "address:192.0.2.1",
	} {
		if listed, err := c.Who(said); err != nil || !strings.HasPrefix(listed.Who.ID, want) {
			t.Errorf("%s: %+v, %v", said, listed.Who, err)
		}
	}
	if listed, err := c.Who("address:10.0.0.0/8"); err != nil || listed.Network != netip.MustParsePrefix("10.0.0.0/8") {
		t.Errorf("a network: %+v, %v", listed, err)
	}
	p := c.Policy
	for said, named := range map[string]policy.Listed{
		"header:X-Product=p1": p.Overrides[0].Who, "api_key:monitor": p.Allow[1], "user:ops": p.Allow[2], "header:X-Robot=1": p.Allow[3], "user:mallory": p.Deny[1],
	} {
		if listed, err := c.Who(said); err != nil || listed != named {
			t.Errorf("%s is %+v, and the file's is %+v (%v)", said, listed, named, err)
		}
	}
	if p.Overrides[1].Who.Network.String() != "10.0.0.0/8" || p.Allow[0].Network.String() != "192.0.2.0/24" || p.Deny[0].Network.String() != "2001:db8::/32" {
		t.Error("networks are not what the file says")
	}
	for said, want := range map[string]string{
		"": "nobody is called so", "acme": "nobody is called so", "cookie:x=1": "nobody is called so", "header:X-Product": "no value", "header:X-Other=1": "no limit counts per {header: X-Other}",
		"api_key:": "is empty", "address:here": "address", "address:10.0.0.0/33": "prefix length", "claimed:password=x": "no limit counts", "user:": "1 to",
	} {
		if _, err := c.Who(said); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", said, err, want)
		}
	}
	for _, said := range []string{"header:X-Product=p1", "claimed:username=alice", "path:id=5"} {
		listed, err := c.Who(said)
		if err != nil {
			t.Fatal(err)
		}
		if stored, is := c.Stored(listed.Who.ID); !is || stored != listed {
			t.Errorf("%s, stored as %s, is %+v", said, listed.Who.ID, stored)
		}
	}
	const hash = "5xtMGAQra5gcQe9BcBJMIw"
	for _, said := range []string{"", "header", "header:", "header:" + hash, "header:X-Product:" + hash, "header:x-product:" + hash + "x", "header:x-other:" + hash, "header:x-robot:" + hash, "header:x-product=" + hash, "user:" + hash, "claimed:password:" + hash} {
		if stored, is := c.Stored(said); is {
			t.Errorf("%q is stored as %+v", said, stored)
		}
	}
}

// Two processes of one secret name clients alike; another secret names them otherwise.
func TestNamesHangOnTheSecret(t *testing.T) {
	var ids []string
	for _, secret := range []string{"0123456789abcdef", "0123456789abcdef", "another 89abcdef"} {
		c, err := Parse("policy.yaml", []byte(everyKind))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.ShareSecret(func([]byte) ([]byte, error) { return []byte(secret), nil }); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.Policy.Overrides[0].Who.Who.ID)
	}
	if ids[0] != ids[1] || ids[0] == ids[2] {
		t.Errorf("%v", ids)
	}
}

// A secret is agreed on where something that clients send is hashed, and only there.
func TestTheSecretIsOfWhatClientsSend(t *testing.T) {
	for text, want := range map[string]bool{
		"identities: {user: {header: X-User, from: 10.0.0.0/8}}\nlimits: [{name: a, per: user, limit: 1/s}]":                                 true,
		"identities: {user: {jwt: {keys: jwks.json}}}\nlimits: [{name: a, per: [user, address], limit: 1/s}]":                                true,
		"limits: [{name: a, per: {all: [{claimed: username}, address]}, limit: 1/s}]":                                                        true,
		"limits: [{name: a, per: {header: X-Team, from: 10.0.0.0/8}, limit: 1/s}]":                                                           true,
		"deny: {header: User-Agent, value: BadBot}\nlimits: []":                                                                              true,
		"identities: {api_key: {header: X-API-Key, keys: keys.yaml}}\nallow: {api_key: acme}\nlimits: [{name: a, per: api_key, limit: 1/s}]": false,
		"deny: 192.0.2.0/24\nlimits: [{name: a, per: address, limit: 1/s}]":                                                                  false,
	} {
		c, err := Parse("policy.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		asked := false
		err = c.ShareSecret(func([]byte) ([]byte, error) {
			asked = true
			return []byte("0123456789abcdef"), nil
		})
		if err != nil || asked != want {
			t.Errorf("%s: asked for a secret: %v, %v", text, asked, err)
		}
	}
}

// The example loads as it stands, with small files of keys beside it.
func TestTheExampleLoadsWithItsKeys(t *testing.T) {
	c, err := Load(filepath.Join("testdata", "example", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckFiles(t.Context()); err != nil {
		t.Error(err)
	}
	var text bytes.Buffer
	if err := c.WriteText(&text); err != nil || strings.Contains(text.String(), "acme-2f7c1b90d4e85a36") {
		t.Errorf("%v\n%s", err, text.String())
	}
	for _, w := range c.Warnings {
		if w.Code != "W-KEYS-OPEN" && w.Code != "W-OVERRIDE-ENDS" && w.Code != "W-OVERRIDE-ENDED" { // as the checkout and the day have it
			t.Error(w)
		}
	}
	c.SecretFile = ""
	if err := c.LoadSecret(); err != nil {
		t.Fatal(err)
	}
	if err := c.LoadKeys(); err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Options{MaxKeys: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := policy.NewEngine(c.Policy, store, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	r := &identity.Request{Header: map[string][]string{"X-Api-Key": {"acme-2f7c1b90d4e85a36"}}}
	if who, shown, err := c.APIKey.Prove(t.Context(), r); err != nil || !shown || who.ID != "api_key:acme" || who.Plan != "pro" {
		t.Errorf("%+v, %v, %v", who, shown, err)
	}
	if c.User.Stats().Keys != 2 {
		t.Errorf("%+v", c.User.Stats())
	}
}

// What stands beside the policy is looked at where it is there.
func TestFilesBesideThePolicyAreChecked(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("policy.yaml", `identities:
  api_key: {header: X-API-Key, keys: keys.yaml}
  user: {jwt: {keys: jwks.json, issuer: i, audience: a}}
limits: [{name: requests, per: [api_key, user, address], limit: 5/s}]
`)
	check := func() (*Config, error) {
		c, err := Load(filepath.Join(dir, "policy.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return c, c.CheckFiles(t.Context())
	}
	c, err := check()
	if err != nil || len(c.Warnings) != 2 || c.Warnings[0].Code != "W-FILE-MISSING" || c.Warnings[0].Line != 2 || c.Warnings[1].Line != 3 {
		t.Errorf("without files: %v, %v", c.Warnings, err)
	}
	write("keys.yaml", "- {id: acme, key: hunter2}\n")
	write("jwks.json", `{"keys":[{"kty":"oct","k":"aHVudGVyMg"}]}`)
	_, err = check()
	if err == nil || !strings.Contains(err.Error(), "policy.yaml:3:22: ") || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVudGVyMg") {
		t.Errorf("a bad key set: %v", err)
	}
	write("keys.yaml", "- {id: acme}\n")
	if _, err = check(); err == nil || !strings.Contains(err.Error(), "keys.yaml:1:") || !strings.Contains(err.Error(), "policy.yaml:3:22: ") {
		t.Errorf("two bad files: %v", err)
	}
}
