// Package policy says which requests are limited, per whom, by what and for how
// much: patterns, identities, limits, and the Engine that asks them all at once.
package policy

import (
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// A Policy is what an Engine enforces. NewEngine checks it.
type Policy struct {
	// Limits in policy order. All that match a request apply, all or nothing.
	Limits []*Limit
	// Preflight is the limit that CORS preflights stand under instead of all
	// others; nil is 600/min by the peer's address. Off: Mode: Off.
	Preflight *Limit
	// Paths says how paths are read.
	Paths Paths
	// Headers are the sets of header fields that answers carry; nil is the triple,
	// an empty slice none.
	Headers []HeaderSet
	// CORS is nil when answers carry no CORS fields of ours.
	CORS *CORS
	// Zone is the time zone of quotas; nil is UTC.
	Zone *time.Location
}

// A Limit is one limit of a policy.
type Limit struct {
	// Name is [a-z*][a-z0-9_.*-]*, its own in the policy.
	Name string
	// Match says which requests it applies to: any of the patterns; none means all.
	// Except takes away from them.
	Match, Except []*Pattern
	// Per says whose budget a request is counted against. A request that shows no
	// such identity is not under the limit.
	Per identity.Source
	// Limit has the algorithm and the numbers; its Name is not used.
	Limit comporta.Limit
	// Cost is what a request costs, the largest of those that match; 1 where none does.
	Cost []Cost
	// Mode enforces unless said.
	Mode Mode
	// Show says whether answers tell of this limit; nil is yes, but not for limits
	// per everyone, shadow and unlimited ones.
	Show *bool
	// Line is where the policy file has it; 0 when there is no file.
	Line int
}

// A Cost is what a request that matches takes. A nil Match is every request.
type Cost struct {
	Match *Pattern
	Units int64
}

// A Mode says what a limit does when it denies.
type Mode uint8

const (
	Enforce Mode = iota
	// Shadow counts and reports, and refuses nothing.
	Shadow
	// Off does not even count.
	Off
)

// Paths says how a path is read before it is matched and forwarded.
type Paths struct {
	// Loose lets through what an upstream might read otherwise: encoded slashes and
	// backslashes, ";" parameters, bad encoding. Else it is refused with 400.
	Loose bool
	// FoldCase matches paths without regard to case.
	FoldCase bool
	// IgnoreTrailingSlash matches /a/ as /a.
	IgnoreTrailingSlash bool
}

// A HeaderSet is a family of header fields that tell of limits.
type HeaderSet uint8

const (
	// Triple is RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset.
	Triple HeaderSet = iota
	// Draft11 is RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-11.
	Draft11
	// XRateLimit is X-RateLimit-Limit, -Remaining and -Reset, the reset in epoch seconds.
	XRateLimit
)

// CORS says which origins may read answers.
type CORS struct {
	// Origins are allowed, as "https://app.example.com"; "*" is any.
	Origins []string
}
