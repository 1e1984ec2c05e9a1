package config

import (
	"fmt"
	"maps"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/identity/jwt"
)

// user reads how users are told apart: by a token, or by a proxy's word. What is
// wrong stands as a source that is nil, as in apiKey.
func (r *reader) user(n *node) {
	r.config.sources["user"] = &source{}
	words := r.mapping(n, "identities.user", userWords)
	if words == nil {
		return
	}
	before := len(r.problems)
	var made func(*identity.Secret) (identity.Source, error)
	switch kind := r.exactly(n, words, "identities.user", "jwt", "header"); {
	case kind == "":
		if len(words) == 0 && len(r.problems) == before {
			r.fault(n, "identities.user says nothing", "write jwt: {keys: jwks.json, …}, or header: X-User and from:")
		}
		return
	case kind == "header":
		made = r.userHeader(n, words)
	default:
		for _, name := range []string{"from", "plan_header", "unknown_plan"} {
			if e, ok := words[name]; ok {
				r.fault(e.key, name+" is for {header: …}, not for {jwt: …}", "leave it out, or write it into jwt")
			}
		}
		made = r.jwt(words["jwt"].value)
	}
	if len(r.problems) > before {
		return
	}
	s, err := made(r.config.secret)
	draft, _ := made(new(identity.Secret))
	if err != nil {
		wrong, hint := splitHint(err.Error(), "change identities.user")
		r.fault(n, "identities.user: "+wrong, hint)
		return
	}
	r.config.hashes = true
	r.config.User, _ = s.(*jwt.Source)
	r.config.sources["user"] = &source{Source: s, draft: draft}
}

// userHeader reads the header in which a proxy says who it is.
func (r *reader) userHeader(n *node, words map[string]entry) func(*identity.Secret) (identity.Source, error) {
	header, _ := r.text(words["header"].value, "header", "X-User")
	said := &userView{Header: textproto.CanonicalMIMEHeaderKey(header)}
	r.config.said.user = said
	e, ok := words["from"]
	if !ok {
		r.fault(n, "identities.user does not say from whom the header comes: anybody could be anybody", "write from: and the addresses of the proxies that check who it is")
		return nil
	}
	said.From = r.from(e.value)
	if e, ok := words["plan_header"]; ok {
		said.PlanHeader, _ = r.text(e.value, "plan_header", "X-Plan")
	}
	said.UnknownPlan = r.unknownPlan(words, "plan_header")
	return func(secret *identity.Secret) (identity.Source, error) {
		return identity.NewProxyHeader(header, said.From, secret, identity.ProxyHeaderOptions{
			PlanHeader: said.PlanHeader, UnknownPlan: said.UnknownPlan, Plans: r.config.hasPlan, Kind: "user",
		})
	}
}

// from reads the proxies whose header is believed.
func (r *reader) from(n *node) []netip.Prefix {
	from := r.trusted(n, "from")
	if n.kind == list && len(n.items) == 0 {
		r.fault(n, "from is an empty list: nobody would be believed", "name the addresses of the proxies")
	}
	return from
}

// unknownPlan reads the plan of those whose proof names none; it stands beside the
// word that says where plans are named.
func (r *reader) unknownPlan(words map[string]entry, beside string) string {
	_, named := words[beside]
	e, ok := words["unknown_plan"]
	switch {
	case named && !ok:
		r.fault(words[beside].key, beside+" needs an unknown_plan: a plan for those who have none there, or none that exists", "write unknown_plan: free")
	case ok && !named:
		r.fault(e.key, "unknown_plan is for where plans are named", "write "+beside+": too, or leave it out")
	case ok:
		return r.planName(e.value)
	}
	return ""
}

// planName reads the name of a plan that the file has.
func (r *reader) planName(n *node) string {
	said, ok := r.text(n, "unknown_plan", "free")
	if ok {
		r.plansNamed = append(r.plansNamed, n)
	}
	return said
}

// checkPlanNames looks for the plans that identities name, once all are read.
func (r *reader) checkPlanNames() {
	for _, n := range r.plansNamed {
		if !r.config.hasPlan(n.text) {
			r.fault(n, fmt.Sprintf("there is no plan %q", n.text), r.config.plansHint(n.text))
		}
	}
}

func (c *Config) hasPlan(name string) bool {
	_, ok := c.Policy.Plans[name]
	return ok
}

// plansHint is what to do about a plan that there is not.
func (c *Config) plansHint(name string) string {
	known := slices.Sorted(maps.Keys(c.Policy.Plans))
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return fmt.Sprintf("write plans: {%s: {…}}", name)
	}
	return "plans of the policy: " + strings.Join(known, ", ")
}

// jwt reads whose tokens are believed.
func (r *reader) jwt(n *node) func(*identity.Secret) (identity.Source, error) {
	words := r.mapping(n, "identities.user.jwt", jwtWords)
	if words == nil {
		return nil
	}
	o := jwt.Options{Plans: r.config.hasPlan}
	r.jwtKeys(n, words, &o)
	for _, said := range [...]struct {
		name, example string
		to            *string
	}{{"issuer", "https://id.example.com", &o.Issuer}, {"claim", "sub", &o.Claim}, {"plan_claim", "plan", &o.PlanClaim}, {"header", "X-Token", &o.Header}} {
		if e, ok := words[said.name]; ok {
			*said.to, _ = r.text(e.value, said.name, said.example)
		}
	}
	o.UnknownPlan = r.unknownPlan(words, "plan_claim")
	if e, ok := words["audience"]; ok {
		for _, item := range r.several(e.value, "audience") {
			if said, ok := r.text(item, "audience", "api"); ok {
				o.Audience = append(o.Audience, said)
			}
		}
	}
	if e, ok := words["algorithms"]; ok {
		for _, item := range r.several(e.value, "algorithms") {
			if said, ok := r.choice(item, "algorithms", jwt.Algorithms()...); ok {
				o.Algorithms = append(o.Algorithms, said)
			}
		}
	}
	for _, name := range []string{"audience", "algorithms"} {
		if e, ok := words[name]; ok && e.value.kind == list && len(e.value.items) == 0 {
			r.fault(e.value, name+" is an empty list", "name one, or leave the word out")
		}
	}
	if e, ok := words["leeway"]; ok {
		if o.Leeway, ok = r.duration(e.value, "leeway"); ok && o.Leeway > jwt.MaxLeeway {
			r.fault(e.value, fmt.Sprintf("leeway of %s is too long: expired tokens live that much longer", e.value.text), "at most 10m, better 30s")
		}
	}
	if len(o.Audience) == 0 || o.Issuer == "" {
		r.warn(n, "W-TOKEN-BROAD", "tokens that the issuer's key signed for something else are taken too: issuer and audience are not both named", "write issuer: and audience: as the tokens have them in iss and aud")
	}
	r.config.said.jwt, r.config.UserFile = &o, o.File+o.SecretFile // one of them is ""
	return func(secret *identity.Secret) (identity.Source, error) {
		o := o
		o.Secret = secret
		return jwt.New(o)
	}
}

// jwtKeys reads where the keys of signatures are: a file, a URL, or a file with a
// secret.
func (r *reader) jwtKeys(n *node, words map[string]entry, o *jwt.Options) {
	keys, isKeys := words["keys"]
	secret, isSecret := words["secret_file"]
	for _, e := range []entry{keys, secret} {
		if e.value != nil {
			r.config.said.userAt = e.value.place
		}
	}
	switch {
	case isKeys == isSecret:
		r.fault(n, "identities.user.jwt wants keys or secret_file, and one of them", "write keys: and the issuer's key set, a file or an https URL, or secret_file: for HS256")
	case isSecret:
		if said, ok := r.text(secret.value, "secret_file", "jwt.secret"); ok {
			o.SecretFile = r.beside(said)
		}
	case strings.Contains(keys.value.text, "://"):
		o.URL = r.secureURL(keys.value, "keys", "https://id.example.com/.well-known/jwks.json")
	default:
		if said, ok := r.text(keys.value, "keys", "jwks.json"); ok {
			o.File = r.beside(said)
		}
	}
}
