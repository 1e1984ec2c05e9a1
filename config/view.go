package config

import (
	"encoding/json"
	"io"
	"net/netip"
	"net/url"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// A view is a config as told: the file's own words, defaults written out.
type view struct {
	File        string         `json:"file"`
	Server      serverView     `json:"server"`
	Store       storeView      `json:"store"`
	SecretFile  string         `json:"secret_file"`
	TimeZone    string         `json:"time_zone"`
	Headers     []string       `json:"headers"`
	CORS        *corsView      `json:"cors"`
	Paths       pathsView      `json:"paths"`
	Identities  identitiesView `json:"identities"`
	SelfService any            `json:"self_service"` // off, or selfServiceView
	Allow       []any          `json:"allow"`
	Deny        []any          `json:"deny"`
	Preflight   limitView      `json:"preflight"`
	Marks       *marksView     `json:"marks"`
	Limits      []limitView    `json:"limits"`
	Overrides   []overrideView `json:"overrides"`
	Warnings    []problemView  `json:"warnings"`
}

type serverView struct {
	Listen         string         `json:"listen"`
	Metrics        string         `json:"metrics"` // off
	Upstream       string         `json:"upstream"`
	ProxyProtocol  []netip.Prefix `json:"proxy_protocol"`
	Admin          *adminView     `json:"admin"`
	TLS            *tlsView       `json:"tls"`
	Timeouts       timeoutsView   `json:"timeouts"`
	MaxHeaderBytes int            `json:"max_header_bytes"`
	MaxBodyBytes   int64          `json:"max_body_bytes"`
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

type marksView struct {
	Header     string `json:"header"`
	SecretFile string `json:"secret_file"`
}

type corsView struct {
	Origins []string `json:"origins"`
}

type pathsView struct {
	Loose               bool `json:"loose"`
	FoldCase            bool `json:"fold_case"`
	IgnoreTrailingSlash bool `json:"ignore_trailing_slash"`
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
			ProxyProtocol: append([]netip.Prefix{}, s.ProxyProtocol...), Admin: viewAdmin(s.Admin),
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
		Identities: c.viewIdentities(), SelfService: viewSelfService(c.SelfService),
		Allow: viewList(c.said.allow), Deny: viewList(c.said.deny),
		Preflight: c.viewLimit(p.Preflight),
		Limits:    []limitView{},
		Overrides: []overrideView{},
		Warnings:  []problemView{},
	}
	if s.TLS != nil {
		v.Server.TLS = &tlsView{s.TLS.Cert, s.TLS.Key}
	}
	if p.CORS != nil {
		v.CORS = &corsView{p.CORS.Origins}
	}
	for _, l := range p.Limits {
		v.Limits = append(v.Limits, c.viewLimit(l))
	}
	for i := range c.overrides {
		v.Overrides = append(v.Overrides, c.viewOverride(&c.overrides[i]))
	}
	if p.Marks != nil {
		v.Marks = &marksView{p.Marks.Header, c.MarksFile}
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
