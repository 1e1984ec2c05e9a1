package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/textproto"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// An Egress is an egress file as understood, defaults written out: APIs of others
// that programs call through a gateway of their own. It is valid because it exists.
type Egress struct {
	File            string
	Listen, Metrics string // Metrics is "" where they are told nowhere
	// Store is what keeps the counts, with what holds while it fails: Store.Store,
	// Store.Policy.OnError and LoadPasswords.
	Store    *Config
	APIs     []*EgressAPI
	Warnings []Problem
}

// An EgressAPI is one API that programs call.
type EgressAPI struct {
	Name string
	// Path is what its requests' paths begin with: "/" or a path without a slash at
	// its end.
	Path     string
	Upstream *url.URL
	// Rule is what all programs together may send; nil is no limit.
	Rule *comporta.Rule
	// Header names the field whose values the API counts apart; "" where it counts all
	// together.
	Header string
	// Set are fields that are set on every request.
	Set []EgressHeader
	// Client has what the file says of waits and retries.
	Client  client.Options
	MaxBody int64
	Timeout time.Duration
}

// An EgressHeader is a field that is set: to a value, or to what a file holds.
type EgressHeader struct{ Name, Value, File string }

// LoadEgress reads an egress file; see [Load].
func LoadEgress(file string) (*Egress, error) {
	data, info, err := readFile(file)
	if err != nil {
		return nil, err
	}
	e, err := ParseEgress(file, data)
	if err != nil {
		return nil, err
	}
	e.Store.warnPassword(info.Mode())
	e.Warnings = e.Store.Warnings
	return e, nil
}

var egressForm = form{
	what: "an egress file", empty: "it needs at least `apis:`, with a name, a path and an upstream each",
	tooLarge: "the file is larger than 256 KiB", tooWordy: fmt.Sprintf("the file has more than %d words", maxWords),
}

// ParseEgress is LoadEgress of a file's text; see [Parse].
func ParseEgress(name string, data []byte) (*Egress, error) {
	top, problems := readTree(name, data, &egressForm)
	if problems != nil {
		problems.sort()
		return nil, problems
	}
	r := &egressReader{reader: &reader{config: &Config{
		File:   name,
		Store:  Store{MaxKeys: defaultKeys, MaxLogBytes: defaultLogBytes},
		Policy: &policy.Policy{}, secret: new(identity.Secret), sources: sources{},
	}}}
	r.egress = &Egress{File: name, Listen: "127.0.0.1:8089", Metrics: "127.0.0.1:9902", Store: r.config}
	r.file(top)
	if len(r.problems) > 0 {
		r.problems.sort()
		return nil, r.problems
	}
	r.egress.Warnings = r.config.Warnings
	Problems(r.egress.Warnings).sort()
	return r.egress, nil
}

// An egressReader reads an egress file with the policy file's reader.
type egressReader struct {
	*reader
	egress *Egress
}

func (r *egressReader) file(top *node) {
	e := r.egress
	words := r.mapping(top, "the file", egressWords)
	if w, ok := words["listen"]; ok {
		e.Listen = r.hostPort(w.value, "listen", e.Listen)
		if !loopback(e.Listen) {
			r.warn(w.value, "W-EGRESS-PUBLIC", "whoever reaches "+e.Listen+" spends these quotas, and with the secrets that headers hold",
				"listen on 127.0.0.1 where the programs are here, else keep all others out with a firewall")
		}
	}
	if w, ok := words["metrics"]; ok {
		e.Metrics = r.metrics(w.value, e.Metrics)
	}
	if e.Listen == e.Metrics && !strings.HasSuffix(e.Listen, ":0") {
		r.fault(top, "listen and metrics are the same address", "give metrics a port of its own")
	}
	if w, ok := words["store"]; ok {
		r.store(w.value)
	}
	w, ok := words["apis"]
	if !ok {
		r.fault(top, "the file has no apis", "write apis: [{name: payments, path: /payments, upstream: https://api.example.com}]")
		return
	}
	if w.value.kind != list || len(w.value.items) == 0 {
		r.wrongKind(w.value, "apis", "a list of mappings with name, path and upstream")
		return
	}
	for _, n := range w.value.items {
		r.api(n)
	}
}

// loopback says whether only programs of this machine reach an address. What a name
// stands for, nobody can see.
func loopback(listen string) bool {
	host, _, _ := net.SplitHostPort(listen)
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

func (r *egressReader) api(n *node) {
	a := &EgressAPI{
		Path: "/", MaxBody: 1 << 20, Timeout: 10 * time.Minute,
		Client: client.Options{
			Attempts: 3, MaxWait: time.Minute, RetryRefused: true, MaxWaiters: 1000,
			Backoff: client.Backoff{Base: 500 * time.Millisecond, Cap: 30 * time.Second}, Budget: client.Budget{Percent: 10},
		},
	}
	words := r.mapping(n, "an api", egressAPIWords)
	if words == nil {
		return
	}
	for _, must := range []string{"name", "path", "upstream"} {
		if _, ok := words[must]; !ok {
			r.fault(n, "an api has no "+must, "write name, path and upstream, like {name: payments, path: /payments, upstream: https://api.example.com}")
		}
	}
	if w, ok := words["name"]; ok {
		a.Name = r.apiName(w.value)
	}
	if w, ok := words["path"]; ok {
		a.Path = r.apiPath(w.value)
	}
	if w, ok := words["upstream"]; ok {
		a.Upstream = r.upstream(w.value)
	}
	r.apiLimit(words, a)
	if w, ok := words["headers"]; ok {
		a.Set = r.setHeaders(w.value)
	}
	r.apiClient(words, a)
	r.egress.APIs = append(r.egress.APIs, a)
}

func (r *egressReader) apiName(n *node) string {
	said, ok := r.text(n, "name", "payments")
	switch {
	case !ok:
	case !goodName.MatchString(said):
		r.fault(n, fmt.Sprintf("%q is no name", said), "write small letters, digits, _ . -, beginning with a letter")
	case slices.ContainsFunc(r.egress.APIs, func(a *EgressAPI) bool { return a.Name == said }):
		r.fault(n, fmt.Sprintf("two apis are named %q", said), "give each a name of its own")
	}
	return said
}

func (r *egressReader) apiPath(n *node) string {
	said, ok := r.text(n, "path", "/payments")
	if !ok {
		return "/"
	}
	if said != "/" {
		said = strings.TrimSuffix(said, "/")
	}
	switch {
	case !strings.HasPrefix(said, "/") || path.Clean(said) != said || strings.ContainsAny(said, "?#%{}* ") || (&url.URL{Path: said}).EscapedPath() != said:
		r.fault(n, fmt.Sprintf("path: %q is no path", said), "write it like /payments, without . and .., of characters that need no encoding")
	case slices.ContainsFunc(r.egress.APIs, func(a *EgressAPI) bool { return a.Path == said }):
		r.fault(n, fmt.Sprintf("two apis have the path %s", said), "give each a path of its own")
	}
	return said
}

func (r *egressReader) apiLimit(words map[string]entry, a *EgressAPI) {
	w, limited := words["limit"]
	algorithm, hasAlgorithm := words["algorithm"]
	if hasAlgorithm && !limited {
		r.fault(algorithm.key, "algorithm without a limit", "add limit: 500/min, or leave it out")
	}
	if limited {
		before := len(r.problems)
		l := r.parsed(w.value, "limit", "500/min burst 50", comporta.ParseLimit)
		if hasAlgorithm {
			if said, ok := r.choice(algorithm.value, "algorithm", "token_bucket", "leaky_bucket", "fixed_window", "sliding_counter", "sliding_log"); ok {
				l.Algorithm, _ = comporta.ParseAlgorithm(said) // one of them
			}
		}
		l.Name = "egress." + a.Name
		if len(r.problems) == before {
			var err error
			if a.Rule, err = l.Compile(); err != nil {
				r.limitError(err, map[string]*node{"algorithm": algorithm.value}, w.value, "limit")
			}
		}
	}
	if w, ok := words["per"]; ok {
		a.Header = r.partition(w.value)
	}
}

func (r *egressReader) partition(n *node) string {
	said, ok := r.text(n, "per", "header:Authorization")
	name, isHeader := strings.CutPrefix(said, "header:")
	switch {
	case !ok || said == "everyone":
		return ""
	case !isHeader || !isFieldName(name):
		r.fault(n, fmt.Sprintf("per: %q is not known here", said), "write everyone, or header:NAME, like header:Authorization")
		return ""
	}
	return textproto.CanonicalMIMEHeaderKey(name)
}

func isFieldName(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// framing are fields that the gateway itself sets.
var framing = []string{"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// secretWords are in the names of fields that hold secrets.
var secretWords = []string{"auth", "key", "token", "secret", "password", "cookie", "signature"}

func (r *egressReader) setHeaders(n *node) (out []EgressHeader) {
	if n.kind != mapping {
		r.wrongKind(n, "headers", "a mapping, like {Authorization: {file: api.key}}")
		return nil
	}
	for _, e := range r.once(n) {
		h := EgressHeader{Name: textproto.CanonicalMIMEHeaderKey(e.key.text)}
		if !isFieldName(e.key.text) || slices.Contains(framing, h.Name) {
			r.fault(e.key, fmt.Sprintf("headers: %q cannot be set", e.key.text), "write the name of a field that does not frame the message, like Authorization")
			continue
		}
		if slices.ContainsFunc(out, func(o EgressHeader) bool { return o.Name == h.Name }) {
			r.fault(e.key, fmt.Sprintf("headers: %s is set twice", h.Name), "small and capital letters are the same there: remove one")
			continue
		}
		if e.value.kind == mapping {
			words := r.mapping(e.value, "a header", egressHeaderWords)
			file, ok := words["file"]
			if !ok {
				r.fault(e.value, "a header's mapping has no file", "write {file: api.key}")
				continue
			}
			if said, ok := r.text(file.value, "file", "api.key"); ok {
				h.File = r.beside(said)
			}
		} else if said, ok := r.text(e.value, "headers: "+h.Name, "a value"); ok {
			h.Value = said
			if slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(strings.ToLower(h.Name), word) }) {
				r.warn(e.value, "W-EGRESS-SECRET", "a secret seems to stand in this file", "put it in a file of its own that only this gateway can read: {file: api.key}")
			}
		}
		out = append(out, h)
	}
	return out
}

// apiClient reads how requests wait and come again.
func (r *egressReader) apiClient(words map[string]entry, a *EgressAPI) {
	c := &a.Client
	whole := func(name string, least, most int64, to func(int64)) {
		if w, ok := words[name]; ok {
			if v, ok := r.whole(w.value, name, least, most); ok {
				to(v)
			}
		}
	}
	durations := func(words map[string]entry, name string, to *time.Duration, most time.Duration) {
		w, ok := words[name]
		if !ok {
			return
		}
		d, ok := r.duration(w.value, name)
		if ok && d > most {
			r.fault(w.value, fmt.Sprintf("%s of %s is out of range", name, comporta.FormatDuration(d)), "at most "+comporta.FormatDuration(most))
		}
		*to = d
	}
	whole("attempts", 1, 20, func(v int64) { c.Attempts = int(v) })
	whole("adaptive", 2, 100, func(v int64) { c.Adaptive = float64(v) })
	whole("max_waiters", 1, 1_000_000, func(v int64) { c.MaxWaiters = int(v) })
	durations(words, "max_wait", &c.MaxWait, 24*time.Hour)
	durations(words, "timeout", &a.Timeout, 24*time.Hour)
	if w, ok := words["max_body"]; ok {
		a.MaxBody, _ = r.size(w.value, "max_body", 1<<30)
	}
	if w, ok := words["retry_refused"]; ok {
		c.RetryRefused = r.boolean(w.value, "retry_refused")
	}
	if w, ok := words["pace"]; ok {
		said, _ := r.choice(w.value, "pace", paces[:]...)
		c.Pace = client.Pace(max(slices.Index(paces[:], said), 0))
	}
	if w, ok := words["budget"]; ok {
		if w.value.kind == text && w.value.text == "off" {
			c.Budget.Percent = -1
		} else {
			c.Budget.Percent = float64(r.percent(w.value, "budget", 1, 100))
		}
	}
	if w, ok := words["backoff"]; ok {
		words := r.mapping(w.value, "backoff", egressBackoffWords)
		durations(words, "base", &c.Backoff.Base, time.Hour)
		durations(words, "cap", &c.Backoff.Cap, time.Hour)
		if c.Backoff.Base > c.Backoff.Cap {
			r.fault(w.value, "base is longer than cap", "make cap the longer one")
		}
		if w, ok := words["jitter"]; ok {
			said, _ := r.choice(w.value, "jitter", jitters[:]...)
			c.Backoff.Jitter = client.Jitter(max(slices.Index(jitters[:], said), 0))
		}
	}
}
