package config

import (
	"fmt"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/identity/jwt"
)

type identitiesView struct {
	APIKey  *apiKeyView `json:"api_key"`
	User    *userView   `json:"user"`
	Address addressView `json:"address"`
	Claimed claimedView `json:"claimed"`
}

type apiKeyView struct {
	Header string `json:"header,omitempty"`
	Query  string `json:"query,omitempty"`
	Cookie string `json:"cookie,omitempty"`
	Bearer bool   `json:"bearer"`
	Keys   any    `json:"keys"` // a file, or keyringView
}

type keyringView struct {
	Redis        string `json:"redis,omitempty"`
	URL          string `json:"url,omitempty"` // without its query
	TokenFile    string `json:"token_file,omitempty"`
	Cache        string `json:"cache"`
	CacheUnknown string `json:"cache_unknown"`
	MaxCached    int    `json:"max_cached"`
	Timeout      string `json:"timeout"`
	OnError      string `json:"on_error"`
}

type userView struct {
	JWT         *jwtView       `json:"jwt,omitempty"`
	Header      string         `json:"header,omitempty"`
	From        []netip.Prefix `json:"from,omitempty"`
	PlanHeader  string         `json:"plan_header,omitempty"`
	UnknownPlan string         `json:"unknown_plan,omitempty"`
}

type jwtView struct {
	Keys        string   `json:"keys,omitempty"` // a URL is without its query
	SecretFile  string   `json:"secret_file,omitempty"`
	Issuer      string   `json:"issuer"`
	Audience    []string `json:"audience"`
	Claim       string   `json:"claim"`
	PlanClaim   string   `json:"plan_claim,omitempty"`
	UnknownPlan string   `json:"unknown_plan,omitempty"`
	Algorithms  []string `json:"algorithms"`
	Leeway      string   `json:"leeway"`
	Header      string   `json:"header"`
}

type claimedView struct {
	MaxBody int    `json:"max_body"`
	NewKeys string `json:"new_keys"`
}

type adminView struct {
	Listen    string `json:"listen"`
	TokenFile string `json:"token_file"`
	Overrides string `json:"overrides"`
	Audit     string `json:"audit"`
}

type selfServiceView struct {
	Path  string `json:"path"`
	Limit string `json:"limit"`
}

// identitiesSaid is what the file says of identities, for telling it again.
type identitiesSaid struct {
	places         identity.Places
	jwt            *jwt.Options
	user           *userView // of a header
	allow, deny    []*node
	keysAt, userAt place // of the words that name files
}

func (c *Config) viewIdentities() identitiesView {
	v := identitiesView{
		Address: c.viewAddress(),
		Claimed: claimedView{c.Policy.Claimed.MaxBody, c.Policy.Claimed.NewKeys.String()},
		User:    c.said.user,
	}
	if c.APIKey != nil {
		p := c.said.places
		v.APIKey = &apiKeyView{textproto.CanonicalMIMEHeaderKey(p.Header), p.Query, p.Cookie, p.Bearer, viewKeyring(c.Keyring)}
	}
	if c.User != nil {
		v.User = &userView{JWT: viewJWT(c.said.jwt)}
	}
	return v
}

func (c *Config) viewAddress() addressView {
	v := addressView{
		Trusted: append([]netip.Prefix{}, c.addresses.trusted...), Header: c.Policy.Address.HeaderName(),
		IPv6Prefix: c.addresses.bits, IPv6Outer: "off",
	}
	if o := c.Policy.IPv6Outer; !o.Off {
		v.IPv6Outer = outerView{o.Prefix, o.Times}
	}
	return v
}

func viewKeyring(k *Keyring) any {
	if k.File != "" {
		return k.File
	}
	o := &k.Cached
	v := keyringView{
		Redis: k.Redis, URL: publicURL(k.URL), TokenFile: k.TokenFile, MaxCached: o.Max, Cache: comporta.FormatDuration(o.TTL),
		CacheUnknown: comporta.FormatDuration(o.UnknownTTL), Timeout: comporta.FormatDuration(o.Timeout),
	}
	for name, is := range lookupErrors {
		if is == o.OnError {
			v.OnError = name
		}
	}
	return v
}

// publicURL is a URL as it may be told: its query may be a secret.
func publicURL(u *url.URL) string {
	if u == nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func viewJWT(o *jwt.Options) *jwtView {
	v := &jwtView{
		Keys: o.File + publicURL(o.URL), SecretFile: o.SecretFile, Issuer: o.Issuer, Audience: append([]string{}, o.Audience...),
		Claim: otherwise(o.Claim, "sub"), PlanClaim: o.PlanClaim, UnknownPlan: o.UnknownPlan, Algorithms: o.Algorithms,
		Leeway: comporta.FormatDuration(jwt.DefaultLeeway), Header: otherwise(o.Header, "Authorization"),
	}
	if len(v.Algorithms) == 0 {
		v.Algorithms = jwt.Algorithms()
	}
	if o.Leeway > 0 {
		v.Leeway = comporta.FormatDuration(o.Leeway)
	}
	return v
}

func viewAdmin(a *Admin) *adminView {
	if a == nil {
		return nil
	}
	return &adminView{a.Listen, a.TokenFile, a.Overrides, a.Audit}
}

func viewSelfService(s *SelfService) any {
	if s == nil {
		return "off"
	}
	return selfServiceView{s.Path, s.Limit.String()}
}

// viewList is a list as the file has it.
func viewList(from []*node) []any {
	out := []any{}
	for _, n := range from {
		if n.kind != mapping {
			out = append(out, n.text)
			continue
		}
		who := map[string]string{}
		for _, e := range n.entries {
			who[e.key.text] = scalars(e.value)
		}
		out = append(out, who)
	}
	return out
}

func (c *Config) perView(s identity.Source) any {
	switch s := s.(type) {
	case identity.First:
		return c.perViews(s)
	case identity.All:
		return map[string]any{"all": c.perViews(s)}
	case identity.Header:
		return map[string]any{"header": s.Name()}
	case *identity.ProxyHeader:
		if one, ok := c.sources["header:"+s.Names()[0]]; ok && one.Source == identity.Source(s) {
			return map[string]any{"header": s.Names()[0], "from": one.from}
		}
	case identity.Path:
		return map[string]any{"path": s.Name()}
	case *identity.Claimed:
		v := map[string]any{"claimed": s.Field()}
		if strings.HasSuffix(s.String(), "exact: true}") {
			v["exact"] = true
		}
		return v
	}
	return s.String()
}

func (c *Config) perViews(sources []identity.Source) []any {
	out := make([]any, len(sources))
	for i, s := range sources {
		out[i] = c.perView(s)
	}
	return out
}

// identities tells how clients are told apart, beside their addresses.
func (p *page) identities(v *identitiesView, claims bool) {
	if k := v.APIKey; k != nil {
		p.line("api keys", strings.Join(placesText(k), ", or "))
		switch keys := k.Keys.(type) {
		case string:
			p.more("listed in " + keys)
		case keyringView:
			p.more(keyringText(&keys))
		}
	}
	if u := v.User; u != nil {
		p.user(u)
	}
	if claims {
		p.line("claimed", fmt.Sprintf("looked for in the first %s of a body, longer ones are refused; an address may come with %s new values per limit",
			formatSize(int64(v.Claimed.MaxBody)), v.Claimed.NewKeys))
	}
}

func placesText(k *apiKeyView) (out []string) {
	for _, place := range [...]struct{ before, name string }{{"in ", k.Header}, {"in the query's ", k.Query}, {"in the cookie ", k.Cookie}} {
		if place.name != "" {
			out = append(out, place.before+place.name)
		}
	}
	if k.Bearer {
		out = append(out, "as a bearer token")
	}
	return out
}

func keyringText(k *keyringView) string {
	where := "looked up at " + k.URL
	if k.Redis != "" {
		where = "looked up in the hash " + k.Redis + " of Redis"
	}
	return fmt.Sprintf("%s, within %s; remembered for %s, unknown ones for %s, at most %d; while nobody answers: %s",
		where, k.Timeout, k.Cache, k.CacheUnknown, k.MaxCached, keysErrorText[k.OnError])
}

// keysErrorText is what holds while keys cannot be looked up.
var keysErrorText = map[string]string{
	"stale":   "the last answer, and keys without one are unknown",
	"unknown": "no key is known",
	"deny":    "requests with a key are refused with 503",
}

func (p *page) user(u *userView) {
	if u.JWT == nil {
		p.line("users", fmt.Sprintf("%s, as %s says it; dropped from all others", u.Header, joined(u.From)))
		if u.PlanHeader != "" {
			p.more(fmt.Sprintf("plan: %s, else %s", u.PlanHeader, u.UnknownPlan))
		}
		return
	}
	j := u.JWT
	where := "after Bearer in Authorization"
	if j.Header != "Authorization" {
		where = "in " + j.Header
	}
	p.line("users", fmt.Sprintf("the claim %s of a token %s, by %s", j.Claim, where, j.Keys+j.SecretFile))
	p.more(fmt.Sprintf("issuer: %s; audience: %s", otherwise(j.Issuer, "any"), otherwise(strings.Join(j.Audience, ", "), "any")))
	p.more(fmt.Sprintf("algorithms: %s; leeway %s", strings.Join(j.Algorithms, ", "), j.Leeway))
	if j.PlanClaim != "" {
		p.more(fmt.Sprintf("plan: the claim %s, else %s", j.PlanClaim, j.UnknownPlan))
	}
}

// claims says whether a limit counts by what nobody proves.
func (c *Config) claims() bool {
	for _, l := range c.Policy.Limits {
		if identity.Has(l.Per, isClaimed) {
			return true
		}
	}
	return false
}

// lists tells who passes all limits and who is refused.
func (p *page) lists(allow, deny []*node) {
	for _, list := range [...]struct {
		name string
		from []*node
	}{{"allowed", allow}, {"denied", deny}} {
		var said []string
		for _, n := range list.from {
			if n.kind == mapping {
				said = append(said, whoText(n.entries))
			} else {
				said = append(said, n.text)
			}
		}
		if len(said) > 0 {
			p.line(list.name, strings.Join(said, ", "))
		}
	}
}

// selfService tells where clients may ask for their own limits.
func (p *page) selfService(v any) {
	said := "clients may not ask for theirs"
	if s, ok := v.(selfServiceView); ok {
		said = fmt.Sprintf("clients may ask for theirs at %s, %s per address", s.Path, s.Limit)
	}
	p.line("own limits", said)
}

func (p *page) admin(a *adminView) {
	if a == nil {
		return
	}
	p.line("admin", fmt.Sprintf("%s, with the token in %s", a.Listen, a.TokenFile))
	p.more("overrides that begin at run time are in " + a.Overrides)
	p.more("what is done is told in " + otherwise(a.Audit, "the gateway's log"))
}
