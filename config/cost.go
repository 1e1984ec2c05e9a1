package config

import (
	"fmt"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

const maxCost = comporta.MaxCost

// charges reads what requests cost a limit, and which are charged in the end.
func (r *reader) charges(n *node, words map[string]entry, l *policy.Limit) {
	if e, ok := words["cost"]; ok {
		if isCostWords(e.value) {
			r.costWords(e.value, l)
		} else {
			l.Cost = r.cost(e.value)
		}
	}
	if e, ok := words["failure"]; ok {
		r.failure(e.value, l)
	}
	charge, estimate := words["charge"].value, l.Estimate != nil
	switch failures := charge != nil && charge.text == "failures"; {
	case failures && words["failure"].value == nil:
		r.fault(charge, "charge: failures does not say which answers are failures", "write failure: {status: [401, 403]} beside it")
	case !failures && words["failure"].value != nil:
		r.fault(words["failure"].key, "failure is for charge: failures", "write charge: failures beside it, or leave it out")
	case failures && estimate:
		r.fault(charge, "charge: failures and an estimate both settle by the answer", "write two limits: all that match apply")
	}
	if estimate && l.Limit.Algorithm == comporta.LeakyBucket {
		r.fault(words["cost"].value, "cost: a leaky_bucket cannot give back what others already stand behind", "use a token_bucket")
	}
}

// cost reads what requests cost: one number, or numbers by pattern.
func (r *reader) cost(n *node) (out []policy.Cost) {
	if n.kind != mapping {
		if n.kind == number && n.text == "0" {
			r.fault(n, "a cost of 0 never counts", "write mode: off to count nothing, or a mapping to let some requests through free")
			return nil
		}
		units, _ := r.whole(n, "cost", 1, maxCost)
		return []policy.Cost{{Units: units}}
	}
	if len(n.entries) == 0 {
		r.fault(n, "cost is an empty mapping", `write cost: {"GET /export": 10}, or leave it out`)
	}
	for _, e := range r.once(n) {
		p := r.pattern(e.key, "cost")
		units, _ := r.whole(e.value, "cost", 0, maxCost)
		out = append(out, policy.Cost{Match: p, Units: units})
	}
	return out
}

// isCostWords says whether a cost is told by words and not by patterns, which have
// a slash.
func isCostWords(n *node) bool {
	return n.kind == mapping && slices.ContainsFunc(n.entries, func(e entry) bool {
		return slices.Contains(names(costWords), e.key.text)
	})
}

// costWords reads a cost that somebody else says: a header of the request, or the
// answer.
func (r *reader) costWords(n *node, l *policy.Limit) {
	words := r.mapping(n, "cost", costWords)
	header, isHeader := words["header"]
	estimate, isEstimate := words["estimate"]
	switch {
	case isHeader && isEstimate:
		r.fault(estimate.key, "cost is said by a header and by an estimate", "write two limits: all that match apply")
	case isHeader:
		l.CostHeader = r.costHeader(n, header, words)
	case isEstimate:
		l.Estimate = r.estimate(n, estimate, words)
	default:
		r.fault(n, "cost has neither a header nor an estimate", "write {header: X-Cost, from: [10.0.0.0/8]}, or {estimate: {default: 100}, from: {response_header: X-Cost}}")
	}
}

func (r *reader) costHeader(n *node, header entry, words map[string]entry) *policy.CostHeader {
	h := &policy.CostHeader{Default: 1}
	h.Name, _ = r.fieldName(header.value, "header", "X-Cost")
	if e, ok := words["refund"]; ok {
		r.fault(e.key, "refund is for costs that the answer settles", "leave it out")
	}
	if e, ok := words["default"]; ok {
		h.Default, _ = r.whole(e.value, "default", 1, maxCost)
	}
	e, ok := words["from"]
	if !ok {
		r.fault(n, "cost by a header does not say whose header is believed", "write from: [10.0.0.0/8], the proxies that set it: a client would say that it costs nothing")
		return h
	}
	h.From = r.from(e.value)
	return h
}

// estimate reads a cost that the answer settles.
func (r *reader) estimate(n *node, estimate entry, words map[string]entry) *policy.Estimate {
	s := &policy.Estimate{}
	inner := r.mapping(estimate.value, "estimate", estimateWords)
	if e, ok := inner["request_json"]; ok {
		s.RequestJSON = r.jsonPlace(e.value, "request_json", "max_tokens")
	}
	if e, ok := inner["default"]; ok {
		s.Default, _ = r.whole(e.value, "default", 1, maxCost)
	} else if inner != nil {
		r.fault(estimate.value, "an estimate has no default", "write default: and what a request is charged that does not say")
	}
	if e, ok := words["default"]; ok {
		r.fault(e.key, "default of an estimate belongs into it", "write estimate: {default: 4096}")
	}
	if e, ok := words["refund"]; ok {
		_, s.Refund = r.choice(e.value, "refund", "upstream_failure")
	}
	const forms = "write from: {response_json: usage.total_tokens}, or from: {response_header: X-Cost}"
	from, ok := words["from"]
	if !ok {
		r.fault(n, "cost by an estimate does not say where the answer tells the real one", forms)
		return s
	}
	if from.value.kind != mapping {
		r.wrongKind(from.value, "from", "{response_json: usage.total_tokens}, or {response_header: X-Cost}")
		return s
	}
	told := r.mapping(from.value, "from", fromWords)
	if len(from.value.entries) != 1 {
		r.fault(from.value, "from does not name one place of the answer", forms)
	}
	if e, ok := told["response_json"]; ok {
		s.ResponseJSON = r.jsonPlace(e.value, "response_json", "usage.total_tokens")
	}
	if e, ok := told["response_header"]; ok {
		s.ResponseHeader, _ = r.fieldName(e.value, "response_header", "X-Cost")
	}
	return s
}

var goodPlace = regexp.MustCompile(placePattern)

// longestPlace bounds the text of a place in JSON.
const longestPlace = 200

// jsonPlace reads where a number stands in JSON: names with dots between them.
func (r *reader) jsonPlace(n *node, what, example string) string {
	said, ok := r.text(n, what, example)
	if ok && (!goodPlace.MatchString(said) || len(said) > longestPlace) {
		r.fault(n, what+" is no place in JSON", "write names with dots between them, as "+example)
		return ""
	}
	return said
}

// fieldName reads the canonical name of a header field that tells something of its
// own: none that frames the message, or that has a meaning for all.
func (r *reader) fieldName(n *node, what, example string) (string, bool) {
	said, ok := r.text(n, what, example)
	if !ok {
		return "", false
	}
	name := textproto.CanonicalMIMEHeaderKey(said)
	if slices.Contains(takenFields[:], name) {
		r.fault(n, fmt.Sprintf("%s: %s has a meaning of its own", what, name), "write a name that nothing else uses, as "+example)
		return "", false
	}
	if _, err := identity.NewHeader(said, r.config.secret); err != nil {
		wrong, hint := splitHint(err.Error(), "write it like "+example)
		r.fault(n, what+": "+wrong, hint)
		return "", false
	}
	return name, true
}

// takenFields are header fields that no policy may give another meaning.
var takenFields = [...]string{
	"Authorization", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Date", "Host", "Keep-Alive", "Location",
	"Proxy-Authorization", "Retry-After", "Set-Cookie", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Via", "Www-Authenticate",
}

// failure reads which answers are failures: {status: [401, 403, 5xx]}.
func (r *reader) failure(n *node, l *policy.Limit) {
	e, ok := r.mapping(n, "failure", failureWords)["status"]
	if !ok {
		if n.kind == mapping {
			r.fault(n, "failure has no status", "write failure: {status: [401, 403]}")
		}
		return
	}
	items := []*node{e.value}
	if e.value.kind == list {
		items = e.value.items
	}
	if len(items) == 0 {
		r.fault(e.value, "status is an empty list", "write failure: {status: [401, 403]}")
	}
	seen := map[string]bool{}
	for _, item := range items {
		if seen[item.text] {
			r.fault(item, "status: "+item.text+" is named twice", "remove one")
			continue
		}
		switch {
		case item.kind == text && goodClass.MatchString(item.text):
			l.Failure.Class = append(l.Failure.Class, int(item.text[0]-'0'))
		case item.kind == number:
			v, ok := r.whole(item, "status", 100, 599)
			if !ok {
				continue
			}
			l.Failure.Status = append(l.Failure.Status, int(v))
		default:
			r.wrongKind(item, "status", "statuses from 100 to 599, or hundreds of them, as 4xx and 5xx")
			continue
		}
		seen[item.text] = true
	}
}

var goodClass = regexp.MustCompile(classPattern)

// statuses are what counts as a failure, as the file says it.
func statuses(f *policy.Failure) (out []string) {
	for _, s := range f.Status {
		out = append(out, strconv.Itoa(s))
	}
	for _, c := range f.Class {
		out = append(out, strconv.Itoa(c)+"xx")
	}
	return out
}
