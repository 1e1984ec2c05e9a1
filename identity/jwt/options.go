package jwt

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta/identity"
)

// The defaults of Options, and bounds that are not for setting.
const (
	DefaultLeeway    = 30 * time.Second
	DefaultRefresh   = 5 * time.Minute
	DefaultTimeout   = 5 * time.Second
	DefaultMaxCached = 10_000

	// MaxToken is the most bytes of a token that are looked at.
	MaxToken = 8 << 10
	// MaxSubject is the most bytes of the claim that names the user.
	MaxSubject = 256
	// MinSecret is the least number of bytes of an HMAC secret (RFC 7518, section 3.2).
	MinSecret = 32

	// Ask is how often tokens that name unknown keys may have the URL asked.
	Ask = 30 * time.Second

	// MaxLeeway is the longest leeway.
	MaxLeeway = 10 * time.Minute

	maxPlan = 256
)

// Options say whose tokens are believed and what is read from them.
//
// Exactly one of File, URL and SecretFile says where keys come from.
type Options struct {
	// File is a JSON Web Key Set (RFC 7517); oct keys in it are HMAC secrets.
	File string
	// URL is where the issuer publishes its key set: https, or http on the loopback
	// alone. Oct keys in it are ignored: what is published is no secret.
	URL *url.URL
	// SecretFile is a file whose bytes, a line end at their end aside, are the HMAC
	// secret.
	SecretFile string

	// Issuer is what iss must be; "" leaves it unread.
	Issuer string
	// Audience are the names of which aud must hold one; none leaves it unread.
	Audience []string
	// Claim names the user, "" is sub. It must be a text that is not empty, or a
	// whole number, of at most MaxSubject bytes.
	Claim string
	// PlanClaim is the claim that holds the user's plan; "" reads none.
	PlanClaim string
	// UnknownPlan is the plan of a user whose PlanClaim is missing, no text, or a
	// plan that there is not. It is mandatory beside PlanClaim.
	UnknownPlan string
	// Plans says whether there is a plan of that name; nil takes every name. It is
	// called once for each verified token and by many at once.
	Plans func(name string) bool
	// Algorithms are those that are taken, such as RS256; none are all that we know.
	Algorithms []string
	// Leeway is how far the issuer's clock and ours may differ, at most 10 minutes.
	// 0 is DefaultLeeway, below is none.
	Leeway time.Duration
	// Header is where the token is. "" is Authorization, in which it follows the
	// word Bearer; any other header holds the token alone.
	Header string

	// Secret is the key under which users are hashed.
	Secret *identity.Secret
	// MaxCached bounds how many verified tokens are remembered; 0 is DefaultMaxCached.
	MaxCached int
	// Refresh is how often a URL is asked for its keys; 0 is DefaultRefresh.
	Refresh time.Duration
	// Timeout bounds one asking; 0 is DefaultTimeout.
	Timeout time.Duration
	// Transport asks the URL; nil is one of our own, with the system's proxy and
	// certificates.
	Transport http.RoundTripper
	// OnError hears of each failure of Run to refresh the keys; nil hears nothing.
	OnError func(error)
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// checked is o with its defaults, or what is wrong with it.
func (o Options) checked() (Options, error) {
	o.Claim = cmp.Or(o.Claim, "sub")
	o.MaxCached = cmp.Or(o.MaxCached, DefaultMaxCached)
	o.Refresh = cmp.Or(o.Refresh, DefaultRefresh)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Leeway = max(cmp.Or(o.Leeway, DefaultLeeway), 0)
	if o.Now == nil {
		o.Now = wall
	}
	o.Header = textproto.CanonicalMIMEHeaderKey(cmp.Or(o.Header, "Authorization"))
	if len(o.Algorithms) == 0 {
		o.Algorithms = Algorithms()
	}
	return o, o.problem()
}

func (o *Options) problem() error {
	given := 0
	for _, is := range []bool{o.File != "", o.URL != nil, o.SecretFile != ""} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return errors.New("the keys come from one place: a file with a key set, its URL, or a file with a secret")
	case o.Secret == nil:
		return errors.New("users are stored as hashes only: give them a secret")
	case (o.PlanClaim == "") != (o.UnknownPlan == ""):
		return errors.New("the claim with the plan and the plan of those who have none there go together: give both or neither")
	case slices.Contains(o.Audience, ""):
		return errors.New("an audience is empty: name what the issuer writes into aud")
	case o.Leeway > MaxLeeway:
		return fmt.Errorf("a leeway of %v is too long: at most %v, better 30s, since expired tokens live that much longer", o.Leeway, MaxLeeway)
	case o.MaxCached < 2 || o.Refresh < 0 || o.Timeout < 0:
		return errors.New("the number of tokens to remember is at least 2, refresh and timeout are no less than 0")
	case strings.ContainsAny(o.Header, " \t\r\n:,"):
		return fmt.Errorf("%q is not a header's name: letters, digits and hyphens, as X-Token", o.Header)
	}
	for _, name := range o.Algorithms {
		if algorithmOf(name) == nil {
			return fmt.Errorf("%q is not an algorithm that is taken: one of %s", name, strings.Join(slices.Sorted(slices.Values(Algorithms())), ", "))
		}
	}
	if o.SecretFile != "" && !slices.Contains(o.Algorithms, "HS256") {
		return errors.New("a secret verifies HS256 alone, which is not among the algorithms that are taken")
	}
	if o.URL != nil {
		return urlProblem(o.URL)
	}
	return nil
}

func urlProblem(u *url.URL) error {
	switch {
	case u.User != nil:
		return errors.New("the URL of the keys holds a name or password: keys of issuers are public, leave it out")
	case u.Host == "":
		return errors.New("the URL of the keys has no host: write it whole, as https://id.example.com/jwks.json")
	case u.Scheme == "https" || u.Scheme == "http" && identity.IsLoopback(u.Hostname()):
		return nil
	}
	return errors.New("the URL of the keys is not https: who can change the answer on its way can sign tokens (http is for the loopback alone)")
}
