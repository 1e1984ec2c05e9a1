package config

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"net/url"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// A view is a config as told: the file's own words, defaults written out.
type view struct {
	File       string         `json:"file"`
	Server     serverView     `json:"server"`
	Store      storeView      `json:"store"`
	SecretFile string         `json:"secret_file"`
	TimeZone   string         `json:"time_zone"`
	Headers    []string       `json:"headers"`
	CORS       *corsView      `json:"cors"`
	Paths      pathsView      `json:"paths"`
	Identities identitiesView `json:"identities"`
	Preflight  limitView      `json:"preflight"`
	Limits     []limitView    `json:"limits"`
	Warnings   []problemView  `json:"warnings"`
}

type serverView struct {
	Listen         string       `json:"listen"`
	Metrics        string       `json:"metrics"` // off
	Upstream       string       `json:"upstream"`
	TLS            *tlsView     `json:"tls"`
	Timeouts       timeoutsView `json:"timeouts"`
	MaxHeaderBytes int          `json:"max_header_bytes"`
	MaxBodyBytes   int64        `json:"max_body_bytes"`
}

type tlsView struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

type timeoutsView struct {
	ReadHeader     string `json:"read_header"`
	Idle           string `json:"idle"`
	Dial           string `json:"dial"`
	ResponseHeader string `json:"response_header"`
	Drain          string `json:"drain"`
}

type storeView struct {
	Memory memoryView `json:"memory"`
	Redis  *redisView `json:"redis"`
}

type memoryView struct {
	MaxKeys     int    `json:"max_keys"`
	MaxLogBytes int64  `json:"max_log_bytes"`
	Save        string `json:"save"`
}

type redisView struct {
	URL                  string `json:"url"` // without passwords
	PasswordFile         string `json:"password_file"`
	SentinelPasswordFile string `json:"sentinel_password_file"`
	Timeout              string `json:"timeout"`
	OnError              string `json:"on_error"`
	Prefix               string `json:"prefix"`
	MaxKnown             int    `json:"max_known"`
}

type leaseView struct {
	Size  any    `json:"size"` // auto or a number
	TTL   string `json:"ttl"`
	Share string `json:"share"`
}

type corsView struct {
	Origins []string `json:"origins"`
}

type pathsView struct {
	Loose               bool `json:"loose"`
	FoldCase            bool `json:"fold_case"`
	IgnoreTrailingSlash bool `json:"ignore_trailing_slash"`
}

type identitiesView struct {
	Address addressView `json:"address"`
}

type addressView struct {
	Trusted    []netip.Prefix `json:"trusted_proxies"`
	Header     string         `json:"header"`
	IPv6Prefix int            `json:"ipv6_prefix"`
	IPv6Outer  any            `json:"ipv6_outer"` // off or outerView
}

type outerView struct {
	Prefix int `json:"prefix"`
	Times  int `json:"times"`
}

// limitView has a limit's words and what they come to.
type limitView struct {
	Name      string     `json:"name"`
	Line      int        `json:"line"`
	Match     []string   `json:"match"`
	Except    []string   `json:"except"`
	Per       any        `json:"per"`
	Limit     string     `json:"limit,omitempty"`
	Quota     string     `json:"quota,omitempty"`
	StartsAt  string     `json:"starts_at,omitempty"`
	Algorithm string     `json:"algorithm"`
	MaxWait   string     `json:"max_wait,omitempty"`
	Cost      []costView `json:"cost"`
	Charge    string     `json:"charge"`
	Stagger   bool       `json:"stagger"`
	Show      bool       `json:"show"`
	Mode      string     `json:"mode"`
	OnError   string     `json:"on_error,omitempty"` // where it is not the store's
	Lease     *leaseView `json:"lease,omitempty"`
	Bound     string     `json:"bound"`

	per string
}

// costView is what requests of a pattern cost; "" is all others.
type costView struct {
	Match string `json:"match"`
	Units int64  `json:"units"`
}

type problemView struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Code   string `json:"code"`
	Text   string `json:"text"`
	Hint   string `json:"hint"`
}

func (c *Config) view() *view {
	s, p := &c.Server, c.Policy
	v := &view{
		File: c.File,
		Server: serverView{
			Listen: s.Listen, Metrics: orOff(s.Metrics), Upstream: urlText(s.Upstream),
			Timeouts: timeoutsView{
				ReadHeader: comporta.FormatDuration(s.Timeouts.ReadHeader), Idle: comporta.FormatDuration(s.Timeouts.Idle),
				Dial: comporta.FormatDuration(s.Timeouts.Dial), ResponseHeader: comporta.FormatDuration(s.Timeouts.ResponseHeader),
				Drain: comporta.FormatDuration(s.Timeouts.Drain),
			},
			MaxHeaderBytes: s.MaxHeaderBytes, MaxBodyBytes: s.MaxBodyBytes,
		},
		Store:      storeView{memoryView{c.Store.MaxKeys, c.Store.MaxLogBytes, c.Store.Save}, viewRedis(c.Store.Redis, p.OnError)},
		SecretFile: c.SecretFile,
		TimeZone:   zoneName(p.Zone),
		Headers:    headerNames(p.Headers),
		Paths:      pathsView(p.Paths),
		Identities: identitiesView{addressView{
			Trusted: append([]netip.Prefix{}, c.addresses.trusted...), Header: p.Address.HeaderName(),
			IPv6Prefix: c.addresses.bits, IPv6Outer: "off",
		}},
		Preflight: viewLimit(p.Preflight),
		Limits:    []limitView{},
		Warnings:  []problemView{},
	}
	if s.TLS != nil {
		v.Server.TLS = &tlsView{s.TLS.Cert, s.TLS.Key}
	}
	if p.CORS != nil {
		v.CORS = &corsView{p.CORS.Origins}
	}
	if !p.IPv6Outer.Off {
		v.Identities.Address.IPv6Outer = outerView{p.IPv6Outer.Prefix, p.IPv6Outer.Times}
	}
	for _, l := range p.Limits {
		v.Limits = append(v.Limits, viewLimit(l))
	}
	for _, w := range c.Warnings {
		v.Warnings = append(v.Warnings, problemView(w))
	}
	return v
}

func viewRedis(s *Redis, onError policy.OnError) *redisView {
	if s == nil {
		return nil
	}
	return &redisView{
		URL: s.Address.String(), PasswordFile: s.PasswordFile, SentinelPasswordFile: s.SentinelPasswordFile,
		Timeout: comporta.FormatDuration(s.Timeout), OnError: onError.String(), Prefix: s.Prefix, MaxKnown: s.MaxKnown,
	}
}

func viewLease(l *comporta.Lease) *leaseView {
	if l == nil {
		return nil
	}
	filled := l.Filled()
	v := &leaseView{Size: "auto", TTL: comporta.FormatDuration(filled.TTL), Share: fmt.Sprintf("%d%%", filled.Share)}
	if filled.Size > 0 {
		v.Size = filled.Size
	}
	return v
}

func viewLimit(l *policy.Limit) limitView {
	n := l.Limit
	v := limitView{
		Name: l.Name, Line: l.Line, Match: texts(l.Match), Except: texts(l.Except), Per: perView(l.Per), per: l.Per.String(),
		Algorithm: n.Algorithm.String(), Cost: []costView{}, Charge: n.Charge.String(), Stagger: n.Stagger,
		Show: l.Shown(), Mode: modeNames[l.Mode],
		Lease: viewLease(n.Lease),
	}
	if l.OnError != policy.Default {
		v.OnError = l.OnError.String()
	}
	if n.Calendar != nil {
		v.Quota, v.StartsAt = n.String(), writeStart(n.Calendar)
	} else {
		v.Limit = n.String()
	}
	if n.MaxWait > 0 {
		v.MaxWait = comporta.FormatDuration(n.MaxWait)
	}
	others := true
	for _, c := range l.Cost {
		pattern := ""
		if c.Match != nil {
			pattern = c.Match.String()
		} else {
			others = false
		}
		v.Cost = append(v.Cost, costView{pattern, c.Units})
	}
	if others {
		v.Cost = append(v.Cost, costView{"", 1})
	}
	if rule, err := n.Compile(); err == nil {
		v.Bound = boundWords(l, rule)
	}
	return v
}

var modeNames = map[policy.Mode]string{policy.Enforce: "enforce", policy.Shadow: "shadow", policy.Off: "off"}

func perView(s identity.Source) any {
	switch s := s.(type) {
	case identity.Header:
		return map[string]string{"header": s.Name()}
	case identity.Path:
		return map[string]string{"path": s.Name()}
	}
	return s.String()
}

func headerNames(sets []policy.HeaderSet) []string {
	if sets == nil {
		sets = []policy.HeaderSet{policy.Triple}
	}
	out := []string{}
	for _, set := range sets {
		for name, s := range headerSets {
			if s == set {
				out = append(out, name)
			}
		}
	}
	return out
}

func texts(patterns []*policy.Pattern) []string {
	out := []string{}
	for _, p := range patterns {
		out = append(out, p.String())
	}
	return out
}

func orOff(s string) string {
	if s == "" {
		return "off"
	}
	return s
}

func urlText(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.String()
}

// WriteJSON writes the policy as understood, defaults included, each limit with
// its bound in words, and the warnings: one JSON object in the file's own words.
func (c *Config) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(c.view())
}
