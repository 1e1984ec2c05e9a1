package policy

import (
	"net/netip"
	"slices"
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
	// Plans are sets of limits by the plans' names. A client's plan comes with its
	// identity (identity.Who).
	Plans map[string]Plan
	// Overrides are single clients' own limits. See [Engine.SetOverrides] for those
	// that begin while the engine runs.
	Overrides []*Override
	// Allow names clients that no limit holds, Deny clients that are refused with
	// 403. Who is in both is refused.
	Allow, Deny []Listed
	// Claimed bounds what is done for identities that nobody proves.
	Claimed Claimed
	// Secret fixes which clients a limit is enforced for, where it is for a share of
	// them. Nil makes one that ends with the process.
	Secret *identity.Secret
	// Marks is how marks are signed; nil where no limit marks.
	Marks *Marks
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

// EachSource calls do with every source that the policy tells clients apart by:
// those of limits, lists and overrides, taken apart; of some more than once.
func (p *Policy) EachSource(do func(identity.Source)) {
	look := func(s identity.Source) {
		identity.Has(s, func(s identity.Source) bool { do(s); return false })
	}
	for _, l := range p.Limits {
		look(l.Per)
	}
	for _, listed := range [][]Listed{p.Allow, p.Deny} {
		for i := range listed {
			look(listed[i].Source)
		}
	}
	for _, o := range p.Overrides {
		look(o.Who.Source)
	}
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
	// OnMissing is what becomes of a request that shows no such identity.
	OnMissing OnMissing
	// Cost is what a request costs, the largest of those that match; 1 where none does.
	Cost []Cost
	// CostHeader is a header that says what a request costs, Estimate a cost that is
	// settled by the answer; at most one of the three is given.
	CostHeader *CostHeader
	Estimate   *Estimate
	// Failure says which answers are failures, with charge: failures.
	Failure Failure
	// Mode enforces unless said. Share, from 1 to 100, enforces for that many percent
	// of the clients, and is shadow for the others; 0 is all.
	Mode  Mode
	Share int
	// OnLimit is what becomes of what is over the limit.
	OnLimit OnLimit
	// Status answers what is refused; 0 is 429.
	Status int
	// Block keeps a client that was denied denied for so long; 0 does not.
	Block time.Duration
	// Message and Help are put into the problem document of a refusal: a text, a link.
	Message, Help string
	// WarnAt, in percent of the limit, is where a client's use is told of: the
	// verdict of the request that passes it says so ([Applied.Warned]); 0 is nowhere.
	// WarnHeader names a response header that then says so too.
	WarnAt     int
	WarnHeader string
	// OnError is what becomes of this limit when the store cannot answer.
	OnError OnError
	// Show says whether answers tell of this limit; nil is yes, but not for limits
	// per everyone, shadow and unlimited ones.
	Show *bool
	// Line is where the policy file has it; 0 when there is no file.
	Line int
}

// Shown says whether answers may tell of the limit: what Show says, or its
// default. With the default it also hangs on the client: whom the limit holds in
// shadow, or allows everything, is not told of it.
func (l *Limit) Shown() bool { return l.shown(isOpen(l.Per), l.Mode != Enforce, l.Limit.Unlimited) }

func (l *Limit) shown(open, shadow, unlimited bool) bool {
	if l.Show != nil {
		return *l.Show
	}
	return open && !shadow && !unlimited
}

// isOpen says whether clients of that kind are told of a limit unless it says
// otherwise.
func isOpen(per identity.Source) bool {
	return !identity.Has(per, func(s identity.Source) bool {
		switch s.(type) {
		case identity.Everyone, *identity.Claimed:
			return true
		}
		return false
	})
}

// A Cost is what a request that matches takes. A nil Match is every request.
type Cost struct {
	Match *Pattern
	Units int64
}

// A CostHeader is a header that says what a request costs, set by a proxy before us.
type CostHeader struct {
	// Name is the header's canonical name; From are the peers that are believed.
	Name string
	From []netip.Prefix
	// Default is the cost where nobody who is believed says one.
	Default int64
}

// An Estimate is a cost that is known once the request is answered. The request
// is charged what it may cost, and settled when the answer tells; an answer that
// does not tell, or is cut short, costs the estimate or what it told until then,
// whichever is more.
type Estimate struct {
	// RequestJSON is a number's place in the request's JSON body, as max_tokens or
	// options.limit; "" is nowhere. Default is charged where it is not there.
	RequestJSON string
	Default     int64
	// ResponseJSON is a number's place in the answer's JSON, or in the JSON of its
	// server-sent events, of which the last one counts; ResponseHeader is a header of
	// the answer, by its canonical name. One of the two is given.
	ResponseJSON, ResponseHeader string
	// Refund gives all of it back where the upstream fails: it cannot be reached, or
	// answers 5xx.
	Refund bool
}

// A Failure says which answers are failures.
type Failure struct {
	// Status are single statuses, such as 401; Class hundreds of them, such as 5 for 5xx.
	Status, Class []int
}

// Is says whether an answer with that status is a failure.
func (f *Failure) Is(status int) bool {
	return slices.Contains(f.Status, status) || slices.Contains(f.Class, status/100)
}

// An OnMissing says what becomes of a request that shows no identity of the limit's.
type OnMissing uint8

const (
	// Skip: it is not under the limit; but a claimed identity that is missing is
	// counted by the address.
	Skip OnMissing = iota
	// ByAddress counts it by its address.
	ByAddress
	// Forbid refuses it with 401.
	Forbid
)

// An OnLimit says what becomes of a request that is over a limit.
type OnLimit uint8

const (
	// Refuse answers it with 429.
	Refuse OnLimit = iota
	// Mark lets it pass and tells the upstream in a signed header.
	Mark
	// Demote lets it pass and says that it comes after others where the house is full.
	Demote
)

// Plan are the numbers of a plan's limits, by the limits' names. They replace a
// limit's own numbers as a whole, burst included; its algorithm stays.
type Plan map[string]comporta.Limit

// An Override is a client's own numbers for some limits. They stand before those
// of its plan.
type Override struct {
	// Who is the client.
	Who Listed
	// Limits are the numbers by the limits' names.
	Limits map[string]comporta.Limit
	// Until is when it ends; zero is never.
	Until time.Time
	// Reason says why, for the log and for whoever reads the policy.
	Reason string
	// Line is where the policy file has it; 0 where none does.
	Line int
}

// Listed names a client, or all of a network.
type Listed struct {
	// Source proves the client, Who is how ([identity.Named]).
	Source identity.Source
	Who    identity.Who
	// Network, where it is valid, is taken instead of both: the client's address is in it.
	Network netip.Prefix
}

// Claimed bounds what is done for identities that nobody proves.
type Claimed struct {
	// MaxBody is how much of a body is read for them, 64 KiB unless said.
	MaxBody int
	// NewKeys is how many keys that the store does not know one address may make for
	// each limit; 100/min burst 300 unless said. What is over it is counted by the
	// address.
	NewKeys comporta.Limit
	// All bounds the keys of headers that anybody may send and of parts of the path
	// too, which costs each of their requests a look at the store; else those of bodies
	// alone are bounded.
	All bool
}

// Marks is how the header is named and signed that tells the upstream of requests
// over a limit that marks.
type Marks struct {
	// Header is its canonical name, Comporta-Mark unless said.
	Header string
	// Key is the key of its HMAC-SHA-256, at least 16 bytes.
	Key []byte
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
