package config

import (
	"fmt"
	"net/netip"

	"github.com/comporta/comporta/identity"
)

// sources are what the file tells clients apart by, beside the address, by what
// they are called: header:X-Tenant, claimed:username, path:id. There is one of
// each, so that what a request shows is looked for once, and operators can name
// clients by it.
type sources map[string]*source

// draft is the source under a secret that is good for nothing: it says whether a
// value is one, before the real secret is read.
type source struct {
	identity.Source
	draft identity.Source
	how   string         // what else the file says of it
	line  int            // that says so
	from  []netip.Prefix // that are believed, of a header
}

// sourceSetups are what to write where a limit counts by what is not set up.
var sourceSetups = map[string]string{
	"api_key": `write identities: {api_key: {header: X-API-Key, keys: keys.yaml}}`,
	"user":    `write identities: {user: {jwt: {keys: jwks.json, issuer: "https://id.example.com", audience: api}}}, or {header: X-User, from: [10.0.0.0/8]}`,
}

// named is the source that needs no more than a word; n is where it stands.
func (r *reader) named(n *node, word string) identity.Source {
	switch word {
	case "address":
		return r.config.Policy.Address
	case "everyone":
		return identity.Everyone{}
	}
	if s, ok := r.config.sources[word]; ok {
		return s.Source // nil where what sets it up is wrong, and said to be
	}
	r.fault(n, word+" is not set up in identities", sourceSetups[word])
	return nil
}

// shared is the one source that is called so: make makes it where n is the first
// to speak of it. What says otherwise of it is a problem.
func (r *reader) shared(n *node, called, how, example string, make func(*identity.Secret) (identity.Source, error)) identity.Source {
	if s, ok := r.config.sources[called]; ok {
		if s.how != how {
			r.fault(n, fmt.Sprintf("%s is said otherwise in line %d: there it is %s, here %s", called, s.line, s.how, how), "say the same in both places")
			return nil
		}
		return s.Source
	}
	made, err := make(r.config.secret)
	draft, _ := make(new(identity.Secret))
	if err != nil {
		wrong, hint := splitHint(err.Error(), "write it like "+example)
		r.fault(n, wrong, hint)
		return nil
	}
	r.config.hashes = true
	r.config.sources[called] = &source{Source: made, draft: draft, how: how, line: n.line}
	return made
}

// header reads the name of a header, and the proxies that are believed where from
// is not nil.
func (r *reader) header(n, from *node) identity.Source {
	said, ok := r.text(n, "header", "X-Tenant")
	if !ok {
		return nil
	}
	plain, err := identity.NewHeader(said, r.config.secret)
	if err != nil {
		wrong, hint := splitHint(err.Error(), "write it like X-API-Key")
		r.fault(n, wrong, hint)
		return nil
	}
	name := plain.Name()
	if name == r.config.Policy.Address.HeaderName() {
		r.fault(n, name+" says which way a request came, not who sent it", "write per: address, and the proxies that may say so in identities.address.trusted_proxies")
		return nil
	}
	if user := r.config.said.user; user != nil && name == user.Header {
		r.fault(n, name+" is what users are told by, as identities.user says", "write user")
		return nil
	}
	if from == nil {
		return r.shared(n, "header:"+name, "what anybody sends", "X-Tenant", func(secret *identity.Secret) (identity.Source, error) {
			return identity.NewHeader(said, secret)
		})
	}
	before := len(r.problems)
	proxies := r.from(from)
	if len(r.problems) > before {
		return nil
	}
	s := r.shared(n, "header:"+name, "what "+joined(proxies)+" sends", "X-User", func(secret *identity.Secret) (identity.Source, error) {
		return identity.NewProxyHeader(said, proxies, secret, identity.ProxyHeaderOptions{})
	})
	if s != nil {
		r.config.sources["header:"+name].from = proxies
	}
	return s
}

// path reads the name of a wildcard.
func (r *reader) path(n *node, said string) identity.Source {
	return r.shared(n, "path:"+said, "a wildcard", "id", func(secret *identity.Secret) (identity.Source, error) {
		return identity.NewPath(said, secret)
	})
}

// claimed reads the name of a field, and whether it is taken as it is.
func (r *reader) claimed(n, exact *node) identity.Source {
	said, ok := r.text(n, "claimed", "username")
	if !ok {
		return nil
	}
	o, how := identity.ClaimedOptions{MaxBody: r.config.Policy.Claimed.MaxBody}, "folded"
	if exact != nil {
		if o.Exact = r.boolean(exact, "exact"); o.Exact {
			how = "exact"
		}
	}
	return r.shared(n, "claimed:"+said, how, "username", func(secret *identity.Secret) (identity.Source, error) {
		return identity.NewClaimed(said, secret, o)
	})
}
