package config

import (
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/comporta/comporta/policy"
	"github.com/comporta/comporta/redisstore"
)

const (
	defaultTimeout = 50 * time.Millisecond
	minTimeout     = time.Millisecond
	maxTimeout     = 10 * time.Second
	defaultPrefix  = "comporta"
	defaultKnown   = 65_536
	maxKnown       = 10_000_000
)

var goodPrefix = regexp.MustCompile(prefixPattern)

// A Redis is the store that several gateways share.
type Redis struct {
	// Address is where its servers are; LoadPasswords gives it what the two files
	// hold. "" is no file.
	Address                            *redisstore.Address
	PasswordFile, SentinelPasswordFile string
	// Timeout bounds every call.
	Timeout time.Duration
	// Prefix begins every key.
	Prefix string
	// MaxKnown bounds the keys whose last answer is remembered.
	MaxKnown int

	at place // of the address in the file
}

// redis reads the mapping, or an address alone.
func (r *reader) redis(n *node) *Redis {
	s := &Redis{Timeout: defaultTimeout, Prefix: defaultPrefix, MaxKnown: defaultKnown}
	var words map[string]entry
	switch n.kind {
	case text:
		words = map[string]entry{"url": {value: n}}
	case mapping:
		words = r.mapping(n, "store.redis", redisWords)
	default:
		r.wrongKind(n, "store.redis", "an address, or a mapping of words: "+strings.Join(names(redisWords), ", "))
		return nil
	}
	if e, ok := words["url"]; ok {
		s.Address, s.at = r.redisAddress(e.value), e.value.place
	} else {
		r.fault(n, "store.redis has no url", `write url: "redis://127.0.0.1:6379/0"`)
	}
	if e, ok := words["password_file"]; ok {
		s.PasswordFile = r.passwordFile(e.value, "password_file", s.Address != nil && s.Address.Password != "")
	}
	if e, ok := words["sentinel_password_file"]; ok {
		s.SentinelPasswordFile = r.passwordFile(e.value, "sentinel_password_file", s.Address != nil && s.Address.SentinelPassword != "")
		if s.Address != nil && s.Address.Kind != redisstore.Sentinel {
			r.fault(e.key, "sentinel_password_file is for redis-sentinel:// only", "leave it out")
		}
	}
	if e, ok := words["timeout"]; ok {
		r.redisTimeout(e.value, s)
	}
	r.config.Policy.OnError = policy.Local
	if e, ok := words["on_error"]; ok {
		r.config.Policy.OnError = r.onError(e.value)
	}
	if e, ok := words["prefix"]; ok {
		if said, ok := r.text(e.value, "prefix", defaultPrefix); ok {
			s.Prefix = said
			if !goodPrefix.MatchString(said) {
				r.fault(e.value, fmt.Sprintf("%q is no prefix of keys", said), "write up to 64 letters, digits, _ . : -")
			}
		}
	}
	if e, ok := words["max_known"]; ok {
		v, _ := r.whole(e.value, "max_known", 1, maxKnown)
		s.MaxKnown = int(v)
	}
	return s
}

// passwordFile reads the name of a file whose password the address must not have too.
func (r *reader) passwordFile(n *node, what string, inURL bool) string {
	said, ok := r.text(n, what, "redis.password")
	if !ok {
		return ""
	}
	if inURL {
		r.fault(n, "a password is in url and in "+what, "take it out of url")
	}
	return r.beside(said)
}

// redisAddress reads where the servers are. It is never repeated: it may hold a
// password.
func (r *reader) redisAddress(n *node) *redisstore.Address {
	said, ok := r.text(n, "url", `"redis://127.0.0.1:6379/0"`)
	if !ok {
		return nil
	}
	a, err := redisstore.ParseAddress(said)
	if err != nil {
		wrong, hint := splitHint(strings.TrimPrefix(err.Error(), "redisstore: address: "), `write it like "redis://127.0.0.1:6379/0"`)
		r.fault(n, "url: "+wrong, hint)
		return nil
	}
	for _, file := range [...]*string{&a.CAFile, &a.CertFile, &a.KeyFile} {
		if *file != "" {
			*file = r.beside(*file)
		}
	}
	for _, server := range a.Servers {
		if host, _, err := net.SplitHostPort(server); err == nil && !a.TLS && public(host) {
			r.warn(n, "W-REDIS-PLAIN", fmt.Sprintf("%s is a public address, and the connection is not encrypted: whoever listens on the way reads the password and all keys", server),
				"write rediss:// for TLS, or use a private address")
			break
		}
	}
	return a
}

// public says whether a host is written as an address of the internet. What a
// name stands for, nobody can see.
func public(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	for _, own := range private {
		if own.Contains(addr.Unmap()) {
			return false
		}
	}
	return addr.IsGlobalUnicast()
}

func (r *reader) redisTimeout(n *node, s *Redis) {
	d, ok := r.duration(n, "timeout")
	if !ok {
		return
	}
	s.Timeout = d
	switch {
	case d < minTimeout || d > maxTimeout:
		r.fault(n, fmt.Sprintf("timeout of %s is out of range", n.text), "from 1ms to 10s")
	case d > time.Second:
		r.warn(n, "W-TIMEOUT-LONG", fmt.Sprintf("while Redis hangs, requests wait for up to %s before on_error decides", n.text),
			"answers take a millisecond where all is well: 50ms is enough for most")
	}
}

var onErrors = map[string]policy.OnError{"local": policy.Local, "allow": policy.Allow, "deny": policy.Deny}

// onError reads what holds while the store fails.
func (r *reader) onError(n *node) policy.OnError {
	said, _ := r.choice(n, "on_error", "local", "allow", "deny")
	return onErrors[said]
}

// warnPassword warns of a password in a policy file that every user of the
// machine can read.
func (c *Config) warnPassword(mode fs.FileMode) {
	s := c.Store.Redis
	if s == nil || mode.Perm()&0o004 == 0 || s.Address.Password == "" && s.Address.SentinelPassword == "" {
		return
	}
	p := s.at.problem("this holds a password, and every user of this machine can read the file", "put the password in a password_file of its own, or run chmod 640 on this file")
	p.Code = "W-PASSWORD-OPEN"
	c.Warnings = append(c.Warnings, p)
	Problems(c.Warnings).sort()
}

// LoadPasswords gives the address of Redis the passwords that files hold. No
// error repeats what is in them.
func (c *Config) LoadPasswords() error {
	s := c.Store.Redis
	if s == nil {
		return nil
	}
	for _, p := range [...]struct {
		name, file string
		to         *string
	}{{"password file", s.PasswordFile, &s.Address.Password}, {"sentinel password file", s.SentinelPasswordFile, &s.Address.SentinelPassword}} {
		if p.file == "" {
			continue
		}
		var err error
		if *p.to, err = readPassword(p.file, "a password"); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// readPassword is the one line of a file. Who else may read the file is not
// looked at: orchestrators mount theirs for everybody in the container.
func readPassword(file, what string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := readSmall(f)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(data), "\r\n")
	if password == "" || strings.ContainsAny(password, "\r\n") {
		return "", fmt.Errorf("%s is not one line with %s", file, what)
	}
	return password, nil
}
