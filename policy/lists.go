package policy

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/gaissmai/bart"

	"github.com/comporta/comporta/identity"
)

// lists are who passes all limits and who is refused.
type lists struct {
	allowed, denied listed
	// leaves prove those who are listed by name.
	leaves []int
}

type listed struct {
	networks *bart.Lite // nil for none
	clients  map[string]bool
}

// denied is the answer to who is on the list of those that are refused.
var denied = &identity.RequestError{Status: http.StatusForbidden, Detail: "Requests from this client are not accepted."}

func (c *compiler) lists() {
	l := &c.engine.lists
	c.listed(&l.allowed, "allow", c.engine.policy.Allow)
	c.listed(&l.denied, "deny", c.engine.policy.Deny)
}

func (c *compiler) listed(to *listed, field string, from []Listed) {
	for _, one := range from {
		if err := one.wrong(); err != nil {
			c.wrong(nil, field, err)
			continue
		}
		if one.Network.IsValid() {
			if to.networks == nil {
				to.networks = new(bart.Lite)
			}
			to.networks.Insert(one.Network.Masked())
			continue
		}
		if to.clients == nil {
			to.clients = make(map[string]bool)
		}
		to.clients[one.Who.ID] = true
		at := c.leaf(one.Source)
		if l := &c.engine.lists; !l.has(at) {
			l.leaves = append(l.leaves, at)
		}
	}
}

// wrong says why an entry of a list can hold for nobody.
func (l *Listed) wrong() error {
	switch {
	case l.Network.IsValid():
		return nil
	case l.Source == nil || l.Who.ID == "":
		return errors.New("an entry is a client, with the source that proves it, or a network")
	case identity.Has(l.Source, isPath):
		return errors.New("a part of the path is known under a limit's patterns only: it cannot be listed")
	}
	return nil
}

func (l *lists) has(leaf int) bool {
	for _, at := range l.leaves {
		if at == leaf {
			return true
		}
	}
	return false
}

// byNetwork looks for the client's address; it reports whether that refuses the request.
func (l *lists) byNetwork(a *asking, v *Verdict) (refused bool) {
	if l.allowed.networks == nil && l.denied.networks == nil {
		return false
	}
	client := a.engine.address.Client(a.request)
	if !client.IsValid() {
		return false
	}
	if l.denied.networks != nil && l.denied.networks.Contains(client) {
		v.refuse(denied)
		return true
	}
	a.free = l.allowed.networks != nil && l.allowed.networks.Contains(client)
	return false
}

// byClient looks for those whom the leaves have proved so far; it reports whether
// that settles the verdict. Who is allowed may still be one who is denied by
// another name, so that all have to be known then; limits have no say any more.
func (l *lists) byClient(a *asking, v *Verdict) (settled bool) {
	all := true
	var wrong *identity.RequestError
	for _, at := range l.leaves {
		switch known := &a.answers[at]; {
		case !known.is:
			all = false
		case known.wrong != nil:
			all, wrong = false, cmp.Or(wrong, known.wrong)
		case !known.shown:
		case l.denied.clients[known.who.ID]:
			v.refuse(denied)
			return true
		case l.allowed.clients[known.who.ID]:
			a.free = true
		}
	}
	if !a.free {
		return false
	}
	for i := range a.under {
		a.under[i].state = out
	}
	v.Refused, v.Failed = wrong, nil
	if v.Listed = all || len(l.denied.clients) == 0; v.Listed {
		v.Refused = nil
	}
	return v.Listed
}

// refuse settles the verdict, whatever was asked before.
func (v *Verdict) refuse(why *identity.RequestError) {
	v.Allowed, v.Refused, v.Failed = false, why, nil
}
