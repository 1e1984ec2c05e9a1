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
	// Address is how the client's address is found, for what looks at it unasked:
	// the preflight limit, the access log. Nil believes the socket alone.
	Address *identity.Address
	// Preflight is the limit that CORS preflights stand under instead of all
	// others; nil is 600/min by Address, under the name "preflight". Mode: Off lets
	// them all pass. Its Match and Cost are not used.
	Preflight *Limit
	// IPv6Outer is the wider limit beside each one by address.
	IPv6Outer IPv6Outer
	// Paths says how paths are read.
	Paths Paths
	// Headers are the sets of header fields that answers carry; nil is the triple,
	// an empty slice none.
	Headers []HeaderSet
	// CORS is nil when answers carry no CORS fields of ours.
	CORS *CORS
	// Zone is the time zone of quotas that name none; nil is UTC.
	Zone *time.Location
	// OnError is what becomes of limits that say nothing else when the store cannot answer.
	OnError OnError
}

// An IPv6Outer is a second limit beside each limit by address, for IPv6 alone:
// by a shorter prefix and with more of everything, since one customer may have
// many of the prefixes that are taken as one client. It is named as the limit
// with ".outer", and stands right after it.
type IPv6Outer struct {
	// Off leaves them out.
	Off bool
	// Prefix is how many bits of the address are one customer; 0 is 48, or none
	// where that is not shorter than what is taken as one client.
	Prefix int
	// Times is by how much limit and burst are multiplied, up to comporta.MaxUnits; 0 is 16.
	Times int
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
	// OnError is what becomes of this limit when the store cannot answer.
	OnError OnError
	// Show says whether answers tell of this limit; nil is yes, but not for limits
	// per everyone, shadow and unlimited ones.
	Show *bool
	// Line is where the policy file has it; 0 when there is no file.
	Line int
}

// Shown says whether answers may tell of the limit: what Show says, or its default.
func (l *Limit) Shown() bool {
	if l.Show != nil {
		return *l.Show
	}
	_, everyone := l.Per.(identity.Everyone)
	return !everyone && l.Mode == Enforce && !l.Limit.Unlimited
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
	// backslashes, ";" parameters, bad encoding. Else it is refused with 400. See Clean.
	Loose bool
	// FoldCase matches paths without regard to case, for an upstream that does so
	// too; values of wildcards are then taken in lower case.
	FoldCase bool
	// IgnoreTrailingSlash matches /a/ as /a, and /a as /a/ too.
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
