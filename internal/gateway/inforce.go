package gateway

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// InForce is what a gateway serves by, and can be replaced while it does: see
// [Gateway.Replace].
type InForce struct {
	// Server is where it listens, what stands behind it, and the bounds.
	Server config.Server
	// Engine decides.
	Engine *policy.Engine
	// SelfService tells clients of their own limits; nil does not.
	SelfService *SelfService
	// Hash names the policy file; "" where there is none.
	Hash string
}

// A reign is what is in force with all that is made for it. It does not change:
// a request ends under the reign that it began under.
type reign struct {
	InForce
	of       *Gateway
	handler  http.Handler
	address  *identity.Address
	problem  func(w http.ResponseWriter, r *http.Request, status int, detail string) // answers in the upstream's place
	headers  []string                                                                // that clients are told apart by, and the forwarding one
	allow    func(h http.Header, r *http.Request)                                    // lets pages of other origins read an answer of ours
	byPath   bool                                                                    // a limit is per a part of the path
	upstream *upstream
}

// newReign makes all that there is to it. What before has open to the same
// upstream is used further; before is nil for the first.
func (g *Gateway) newReign(f InForce, before *reign) (*reign, error) {
	if err := checkUpstream(f.Server.Upstream); err != nil {
		return nil, err
	}
	s := &reign{InForce: f, of: g, address: f.Engine.Policy().Address, problem: httplimit.NewProblem(f.Engine), allow: httplimit.NewCORS(f.Engine)}
	if s.address == nil {
		s.address = new(identity.Address) // which believes the socket alone
	}
	s.headers = headersOf(f.Engine.Policy(), s.address)
	s.byPath = slices.ContainsFunc(f.Engine.Limits(), isPerPath)
	if before != nil && before.upstream.serves(&f.Server) {
		s.upstream = before.upstream
	} else {
		s.upstream = newUpstream(g, &f.Server)
	}
	limits := httplimit.New(f.Engine, httplimit.Options{Observe: s.observe, Warned: s.warned, Unsettled: s.unsettled})
	s.handler = s.bodies(s.self(limits(s.bounds(newProxy(s)))))
	return s, nil
}

// engines are those whose limits are counted.
func (f *InForce) engines() []*policy.Engine {
	if f.SelfService == nil {
		return []*policy.Engine{f.Engine}
	}
	return []*policy.Engine{f.Engine, f.SelfService.limit}
}

// InForce is what new requests are served by now.
func (g *Gateway) InForce() InForce { return g.reign.Load().InForce }

// Replace puts something else in force: requests that begin from now on are
// served by it, those in flight end by what was before. What cannot change while
// the gateway runs stays as it is; restart names it, in the words of policy files.
// On an error nothing has changed.
//
// Calls must not be made at the same time.
func (g *Gateway) Replace(next InForce) (restart []string, err error) {
	before := g.reign.Load()
	restart = keepFixed(&before.Server, &next.Server)
	if next.Server.Upstream != nil && isItself(next.Server.Upstream, g.Addr()) {
		return nil, errItself(next.Server.Upstream)
	}
	s, err := g.newReign(next, before)
	if err != nil {
		return nil, err
	}
	g.listener.believe(next.Server.ProxyProtocol)
	next.Engine.Follow(before.Engine)
	g.reign.Store(s)
	g.o.Telemetry.Follow(next.engines()...)
	g.o.Telemetry.InForce(next.Hash)
	if s.upstream != before.upstream {
		before.upstream.retire()
	}
	return restart, nil
}

// keepFixed keeps what a server cannot change while it listens, and names it.
func keepFixed(is, next *config.Server) (restart []string) {
	keep := func(name string, same bool) {
		if !same {
			restart = append(restart, "server."+name)
		}
	}
	keep("listen", is.Listen == next.Listen)
	keep("metrics", is.Metrics == next.Metrics)
	keep("tls", reflect.DeepEqual(is.TLS, next.TLS))
	keep("admin", reflect.DeepEqual(is.Admin, next.Admin))
	keep("timeouts.read_header", is.Timeouts.ReadHeader == next.Timeouts.ReadHeader)
	keep("timeouts.idle", is.Timeouts.Idle == next.Timeouts.Idle)
	keep("max_header_bytes", is.MaxHeaderBytes == next.MaxHeaderBytes)
	next.Listen, next.Metrics, next.TLS, next.Admin = is.Listen, is.Metrics, is.TLS, is.Admin
	next.Timeouts.ReadHeader, next.Timeouts.Idle, next.MaxHeaderBytes = is.Timeouts.ReadHeader, is.Timeouts.Idle, is.MaxHeaderBytes
	return restart
}

// Trouble notes that a file, as it now is, cannot be used, so that what was before
// stays in force: /readyz says so until the file is right again, for which why is "".
func (g *Gateway) Trouble(file, why string) {
	g.troubled.Lock()
	defer g.troubled.Unlock()
	if why == "" {
		delete(g.troubles, file)
	} else {
		g.troubles[file] = why
	}
	g.o.Telemetry.Current(len(g.troubles) == 0)
}

// Waiting notes the words of the policy in force that take a restart to apply, in
// place of those noted before: /readyz names them until there are none.
func (g *Gateway) Waiting(words []string) {
	g.troubled.Lock()
	defer g.troubled.Unlock()
	g.waiting = words
	g.o.Telemetry.Waiting(len(words))
}
