package config

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// The longest texts of a refusal, in bytes.
const (
	longestMessage = 500
	longestHelp    = 2000
)

// conduct reads what becomes of requests: of those that show no identity, and of
// those over the limit. It comes after the numbers and the mode.
func (r *reader) conduct(words map[string]entry, l *policy.Limit) {
	if e, ok := words["on_missing"]; ok {
		l.OnMissing = r.onMissing(e.value)
		if e.value.text == "skip" && identity.Has(l.Per, isClaimed) {
			r.fault(e.value, "on_missing: skip is not for a claimed field: who leaves it out would not be limited", "write address, which is the default, or deny")
		}
	}
	if e, ok := words["on_limit"]; ok {
		r.onLimit(e.value, l)
	}
	if e, ok := words["enforce"]; ok {
		r.enforce(e, l)
	}
	if e, ok := words["block"]; ok {
		r.block(e, l)
	}
	if e, ok := words["message"]; ok {
		l.Message = r.message(e.value)
	}
	if e, ok := words["help"]; ok {
		l.Help = r.help(e.value)
	}
	if e, ok := words["warn_at"]; ok {
		r.warnAt(e.value, l)
	}
	r.lockout(words, l)
}

var onMissings = map[string]policy.OnMissing{"skip": policy.Skip, "address": policy.ByAddress, "deny": policy.Forbid}

func (r *reader) onMissing(n *node) policy.OnMissing {
	said, _ := r.choice(n, "on_missing", "skip", "address", "deny")
	return onMissings[said]
}

var onLimits = map[string]policy.OnLimit{"refuse": policy.Refuse, "mark": policy.Mark, "demote": policy.Demote}

// onLimit reads refuse, mark, demote, or {status: 503}.
func (r *reader) onLimit(n *node, l *policy.Limit) {
	if n.kind == number {
		r.fault(n, "on_limit of "+n.text+" is a number", "write on_limit: {status: 503}, or refuse, mark or demote")
		return
	}
	if n.kind != mapping {
		said, _ := r.choice(n, "on_limit", "refuse", "mark", "demote")
		l.OnLimit = onLimits[said]
		return
	}
	e, ok := r.mapping(n, "on_limit", onLimitWords)["status"]
	if !ok {
		r.fault(n, "on_limit has no status", "write on_limit: {status: 503}, or refuse, mark or demote")
		return
	}
	v, _ := r.whole(e.value, "status", 400, 599)
	l.Status = int(v)
}

// enforce reads for how many in a hundred clients a limit is enforced. Who they are
// must not be the clients' choice.
func (r *reader) enforce(e entry, l *policy.Limit) {
	l.Share = r.percent(e.value, "enforce", 1, 99)
	r.config.hashes = true // the secret says who they are, and has to stay
	if l.Mode == policy.Shadow {
		r.fault(e.key, "enforce and mode: shadow contradict each other", "leave out mode: who is not held is in shadow")
	}
	if l.Choosable() {
		r.fault(e.key, "enforce: a share is for clients that prove who they are: an attacker would choose to be one that is not held", "write mode: shadow to try the limit out, or count per api_key or user alone")
	}
}

func (r *reader) block(e entry, l *policy.Limit) {
	d, ok := r.duration(e.value, "block")
	if !ok {
		return
	}
	if d < comporta.MinWindow || d > comporta.MaxWindow {
		r.fault(e.value, "block of "+e.value.text+" is out of range", "from 1ms to 400 days")
		return
	}
	if l.Mode == policy.Shadow {
		r.fault(e.key, "block does not go with mode: shadow, which denies nobody", "leave one of them out")
	}
	l.Block = d
}

// message reads a text for refusals: one line.
func (r *reader) message(n *node) string {
	said, ok := r.text(n, "message", "Ask for fewer pages at a time.")
	switch {
	case !ok:
	case len(said) > longestMessage:
		r.fault(n, fmt.Sprintf("message is longer than %d bytes", longestMessage), "put the long text on a page, and its address into help")
	case strings.ContainsFunc(said, func(c rune) bool { return unicode.In(c, unicode.Zl, unicode.Zp) || c == utf8.RuneError }):
		r.fault(n, "message is not one line", "leave out the line separators")
	}
	return said
}

// help reads a link for refusals.
func (r *reader) help(n *node) string {
	const example = "https://docs.example.com/limits"
	said, ok := r.text(n, "help", example)
	if !ok {
		return ""
	}
	u, err := url.Parse(said)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsAny(said, " \"<>"):
		r.fault(n, "help is no http or https URL", "write it like "+example)
	case u.User != nil:
		r.fault(n, "help has a user or password in it", "leave it out: every client may read it")
	case len(said) > longestHelp:
		r.fault(n, fmt.Sprintf("help is longer than %d bytes", longestHelp), "write a shorter address")
	}
	return said
}

// warnAt reads from where on a client's use is told of: 80%, or {at, header}.
func (r *reader) warnAt(n *node, l *policy.Limit) {
	at := n
	if n.kind == mapping {
		words := r.mapping(n, "warn_at", warnAtWords)
		if e, ok := words["header"]; ok {
			l.WarnHeader, _ = r.fieldName(e.value, "header", "X-Quota-Warning")
		}
		e, ok := words["at"]
		if !ok {
			r.fault(n, "warn_at has no at", "write warn_at: {at: 80%, header: X-Quota-Warning}")
			return
		}
		at = e.value
	}
	l.WarnAt = r.percent(at, "warn_at", 1, 100)
	if l.Limit.Algorithm != comporta.FixedWindow {
		r.fault(n, "warn_at is for quotas and fixed windows: what fills all the time is passed all the time", "leave it out, or write algorithm: fixed_window")
	}
}

// lockout refuses a limit by which a stranger could keep an account's owner out:
// one that charges attempts to whoever is named in them.
func (r *reader) lockout(words map[string]entry, l *policy.Limit) {
	e, said := words["lockout"]
	if said {
		_, said = r.choice(e.value, "lockout", "accepted")
	}
	if l.Limit.Charge == comporta.Attempts && identity.Has(l.Per, isClaimed) && !said {
		r.fault(words["charge"].value, "whoever can name an account could lock its owner out: charge: attempts on a claimed identity",
			"write charge: failures and per: {all: [{claimed: …}, address]}; or lockout: accepted, if that is meant")
	}
}

func isClaimed(s identity.Source) bool {
	_, is := s.(*identity.Claimed)
	return is
}

func onLimitText(l *policy.Limit) string {
	if l.Status != 0 {
		return strconv.Itoa(l.Status)
	}
	for name, o := range onLimits {
		if o == l.OnLimit {
			return name
		}
	}
	return ""
}
