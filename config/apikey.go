package config

import (
	"fmt"
	"net/url"
	"time"

	"github.com/comporta/comporta/identity"
)

const (
	minCached      = 1000
	maxCached      = 10_000_000
	maxCacheTime   = 24 * time.Hour
	maxKeysTimeout = 10 * time.Second
)

// A Keyring says where API keys are looked up: File, Redis or URL is given.
type Keyring struct {
	// File is read by LoadKeys.
	File string
	// Redis is the hash that holds them in the Redis of the store.
	Redis string
	// URL is asked for each key, with the token that TokenFile holds; "" is none.
	URL       *url.URL
	TokenFile string
	// Cached is how answers of Redis and of the URL are remembered.
	Cached identity.CachedOptions
}

// Token is the one line of TokenFile; "" where none is named. No error repeats it.
func (k *Keyring) Token() (string, error) {
	if k.TokenFile == "" {
		return "", nil
	}
	token, err := readPassword(k.TokenFile, "a token")
	if err != nil {
		err = fmt.Errorf("token file: %w", err)
	}
	return token, err
}

// apiKey reads how clients are told apart by keys. What is wrong stands as a
// source that is nil, so that limits that count by it are not wrong too.
func (r *reader) apiKey(n *node) {
	r.config.sources["api_key"] = &source{}
	words := r.mapping(n, "identities.api_key", apiKeyWords)
	if words == nil {
		return
	}
	before := len(r.problems)
	p := identity.Places{}
	for _, place := range [...]struct {
		name, example string
		to            *string
	}{{"header", "X-API-Key", &p.Header}, {"query", "key", &p.Query}, {"cookie", "api_key", &p.Cookie}} {
		if e, ok := words[place.name]; ok {
			*place.to, _ = r.text(e.value, place.name, place.example)
		}
	}
	if e, ok := words["bearer"]; ok {
		p.Bearer = r.boolean(e.value, "bearer")
	}
	if e, ok := words["query"]; ok {
		r.warn(e.value, "W-KEY-IN-QUERY", "keys in queries end up in logs, histories and the Referer of others", "take them in a header, or as a bearer token")
	}
	if e, ok := words["keys"]; ok {
		r.config.Keyring, r.config.said.keysAt = r.keyring(e.value), e.value.place
	} else {
		r.fault(n, "identities.api_key has no keys", "write keys: keys.yaml, the file that lists them")
	}
	if len(r.problems) > before {
		return
	}
	made, err := identity.NewAPIKey(p)
	if err != nil {
		wrong, hint := splitHint(err.Error(), "write header: X-API-Key, query: key, cookie: api_key or bearer: true")
		r.fault(n, wrong, hint)
		return
	}
	r.config.APIKey, r.config.said.places = made, p
	r.config.sources["api_key"] = &source{Source: made, draft: made}
}

// keyring reads where the keys are: a file, or whom to ask.
func (r *reader) keyring(n *node) *Keyring {
	k := &Keyring{}
	if n.kind == text {
		if said, ok := r.text(n, "keys", "keys.yaml"); ok {
			k.File = r.beside(said)
		}
		return k
	}
	if n.kind != mapping {
		r.wrongKind(n, "keys", "a file, {redis: comporta-keys}, or {url: …}")
		return k
	}
	words := r.mapping(n, "identities.api_key.keys", keysWords)
	hash, isRedis := words["redis"]
	at, isURL := words["url"]
	switch {
	case isRedis == isURL:
		r.fault(n, "keys wants redis or url, and one of them", "write redis: and the name of a hash, or url: and where to ask")
	case isRedis:
		k.Redis, _ = r.text(hash.value, "redis", "comporta-keys")
		if r.config.Store.Redis == nil {
			r.fault(hash.value, "keys: there is no Redis to ask", `write store: {redis: {url: "redis://127.0.0.1:6379/0"}}`)
		}
	default:
		k.URL = r.secureURL(at.value, "url", "https://keys.example.com/lookup")
	}
	if e, ok := words["token_file"]; ok {
		if said, ok := r.text(e.value, "token_file", "keys.token"); ok {
			k.TokenFile = r.beside(said)
		}
		if isRedis {
			r.fault(e.key, "keys: token_file is for url", "leave it out")
		}
	}
	r.cached(words, &k.Cached)
	return k
}

// cached reads how answers are remembered.
func (r *reader) cached(words map[string]entry, o *identity.CachedOptions) {
	*o = identity.CachedOptions{
		TTL: identity.DefaultKeyTTL, UnknownTTL: identity.DefaultUnknownTTL,
		Timeout: identity.DefaultKeyTimeout, Max: identity.DefaultMaxKeys,
	}
	for _, wait := range [...]struct {
		name string
		most time.Duration
		to   *time.Duration
	}{{"cache", maxCacheTime, &o.TTL}, {"cache_unknown", maxCacheTime, &o.UnknownTTL}, {"timeout", maxKeysTimeout, &o.Timeout}} {
		e, ok := words[wait.name]
		if !ok {
			continue
		}
		if d, ok := r.duration(e.value, wait.name); ok {
			if *wait.to = d; d > wait.most {
				r.fault(e.value, fmt.Sprintf("%s of %s is too long", wait.name, e.value.text), "at most "+span(wait.most))
			}
		}
	}
	if e, ok := words["max_cached"]; ok {
		v, _ := r.whole(e.value, "max_cached", minCached, maxCached)
		o.Max = int(v)
	}
	if e, ok := words["on_error"]; ok {
		said, _ := r.choice(e.value, "on_error", "stale", "unknown", "deny")
		o.OnError = lookupErrors[said]
	}
}

var lookupErrors = map[string]identity.OnLookupError{"stale": identity.Stale, "unknown": identity.Unknown, "deny": identity.Refuse}

// secureURL reads a URL that is asked for what is believed: https, or http on the
// loopback alone. It is never repeated: it may hold a secret.
func (r *reader) secureURL(n *node, what, example string) *url.URL {
	said, ok := r.text(n, what, example)
	if !ok {
		return nil
	}
	u, err := url.Parse(said)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		r.fault(n, what+" is not a URL", "write it like "+example)
	case u.User != nil:
		r.fault(n, what+" has a user or password in it", "leave it out")
	case u.Fragment != "":
		r.fault(n, what+" has a fragment", "leave out # and what is behind it")
	case u.Scheme == "http" && !identity.IsLoopback(u.Hostname()):
		r.fault(n, what+" is not https: whoever can change the answer on its way can say who is who", "write https://; http is for the loopback alone")
	default:
		return u
	}
	return nil
}
