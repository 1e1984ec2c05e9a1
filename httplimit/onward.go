package httplimit

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// demotedHeader tells the upstream which limits a request is over that comes after
// others.
const demotedHeader = "Comporta-Demoted"

// proxiedIn are the policy's sources by what a proxy before us says in header
// fields: those of anybody else do not go on.
func proxiedIn(p *policy.Policy) (found []*identity.ProxyHeader) {
	p.EachSource(func(s identity.Source) {
		if h, is := s.(*identity.ProxyHeader); is && !slices.Contains(found, h) {
			found = append(found, h)
		}
	})
	return found
}

// onward is the request that goes on: with its body whole, without what only we or
// a trusted proxy may say, and with what we say. The request that came in is left
// alone.
func (g *guard) onward(r *http.Request, d *desk, uncompressed bool) *http.Request {
	on := onward{request: r}
	if d.beginning.begun != nil {
		on.copy().Body = d.beginning.begun
	}
	on.keep()
	on.drop(g.marks.Header)
	on.drop(demotedHeader)
	for _, p := range g.proxied {
		if !p.From(d.request.Peer) {
			for _, name := range p.Names() {
				on.drop(name)
			}
		}
	}
	if uncompressed {
		on.drop("Accept-Encoding")
	}
	if g.says {
		for i := range d.verdict.Applied {
			switch a := &d.verdict.Applied[i]; {
			case a.Marks():
				on.say(g.marks.Header, g.mark(a, d.verdict.Now, on.request))
			case a.Demotes():
				on.say(demotedHeader, a.Limit.Name)
			}
		}
	}
	return on.request
}

// An onward is a request that is copied before it is changed, and so is its header.
type onward struct {
	request        *http.Request
	copied, cloned bool
}

func (o *onward) copy() *http.Request {
	if !o.copied {
		r := *o.request
		o.request, o.copied = &r, true
	}
	return o.request
}

func (o *onward) header() http.Header {
	r := o.copy()
	if !o.cloned {
		if r.Header, o.cloned = maps.Clone(r.Header), true; r.Header == nil {
			r.Header = make(http.Header)
		}
	}
	return r.Header
}

func (o *onward) say(name, line string) {
	h := o.header()
	h[name] = append(h[name], line)
}

func (o *onward) drop(name string) {
	if _, there := o.request.Header[name]; there {
		delete(o.header(), name)
	}
}

// keep takes the names of fields out of Connection: proxies leave out the fields that
// it names, and what limits have seen, or say, has to go on. Whoever may name them
// there could take its mark away, or the type of a body that was read by it.
func (o *onward) keep() {
	lines := o.request.Header["Connection"]
	if !slices.ContainsFunc(lines, func(line string) bool { return line != "close" && line != "keep-alive" }) {
		return // nearly always
	}
	var options []string
	for option := range tokens(lines) {
		if slices.ContainsFunc(ofConnections, func(name string) bool { return strings.EqualFold(name, option) }) {
			options = append(options, option)
		}
	}
	delete(o.header(), "Connection")
	if len(options) > 0 {
		o.header()["Connection"] = []string{strings.Join(options, ", ")}
	}
}

// ofConnections are what Connection may say: of the connection itself, and of fields
// that are nobody's but the next one's.
var ofConnections = []string{"close", "keep-alive", "upgrade", "te", "http2-settings", "proxy-connection"}
