package httplimit

import (
	"cmp"
	"context"
	"net/http"
	"sync"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// Options are what may be said besides the policy. The zero Options are ready.
type Options struct {
	// Observe, unless nil, is called with every verdict, allowed or not, before any
	// waiting and before the handler: for counting and logging. It is called by
	// many goroutines at once. The verdict is valid only during the call. A request
	// that is refused for its path gets no verdict and is not seen here.
	Observe func(v *policy.Verdict, r *http.Request)
	// Warned, unless nil, is called when the answer to a request has brought a client's
	// use to where a limit tells of it ([policy.Limit.WarnAt]), with the verdict as it
	// stands then. Where no answer settles the limit, the verdict that Observe gets
	// says so. It is called by many goroutines at once.
	Warned func(v *policy.Verdict, r *http.Request)
	// Unsettled, unless nil, is called with the error where the store could not settle
	// what an answer cost. What the request was charged for then stays, as far as the
	// store knows. It is called by many goroutines at once.
	Unsettled func(err error, r *http.Request)
}

// New makes middleware that enforces the engine's policy. It may wrap any number
// of handlers; they then share the engine's budgets.
//
// Where the handler's answer has fields of its own (a proxy's upstream, middleware
// further in), one line of each name is left. RateLimit-Limit, -Remaining and
// -Reset stay or go together, and so do the three of X-RateLimit: theirs stay,
// unless ours have less remaining or, with as much, the later reset, or theirs
// are not three readable numbers. The lists RateLimit-Policy and RateLimit are
// joined; of two items with one name the tighter stays, and a list that is not
// one of named items is replaced. Their Retry-After stays, unless nothing is
// left under the limit that the headers name and its next unit comes later.
//
// Where the store could not answer, Comporta-Store says in every answer of ours and
// of the handler what became of the request: local, allow or deny (see
// [policy.OnError]). A request that is refused so gets 503.
//
// A denial is answered with the status, the message and the help of the limit that
// headers name, where it denies, else of the one with the longest retry: 429 and
// quota-exceeded unless the policy says otherwise; 503, gRPC's 14, is
// temporary-reduced-capacity. A request that is refused for itself
// ([policy.Verdict.Refused]) gets the status and detail of that, with the fields of
// the limits that it was counted under; 401 asks for a Bearer, 408 and 413 close the
// connection.
//
// Where a limit looks into a body, as much is read as it asks for, within 10 seconds
// (408), and handed on as it came, with its length and its end; no body is read for
// others. For the 10 seconds the server has to know read deadlines, as net/http's
// does ([http.ResponseController]).
//
// What answers settle ([policy.Pending]) is settled before the client can know of
// the answer: by the head before it is sent, and by the body before its last piece
// is passed on, where its Content-Length, the end of its JSON document or an event
// with [DONE] tells which that is, else before the handler's return ends it. Bodies
// are read on their way and not held back: JSON (application/json and +json), lines
// of it (application/x-ndjson, application/jsonl) and server-sent events. A body
// that is compressed cannot be read, so Accept-Encoding is taken out of requests
// whose answers are; one that is compressed all the same keeps the estimate, as do
// parts (206) and answers without a body. Fields tell of what is settled by the head.
// A handler that ends without an answer, by a panic, has failed; one that takes over
// the connection has answered 101.
//
// What goes on to the handler never has header fields that clients may not set: the
// policy's mark header, Comporta-Demoted, and those of an authenticating proxy
// ([identity.ProxyHeader]) unless that is the peer. Its Connection names no fields,
// by which a client could have the next proxy leave out what limits saw, or what we
// say. A request over a limit that marks
// gets one line in the mark header for each ([Marked]), over one that demotes the
// limit's name in Comporta-Demoted.
//
// A limit's WarnHeader is in every answer while the client's use is past its WarnAt,
// as a list of structured fields: "monthly";at=80;q=10000;r=1877;t=86400 is a use past
// 80 %, the quota, what remains of it, and the seconds until there is more.
//
// An allowed request costs under a microsecond and two allocations, besides the
// one of the client's identity; more where it is marked, warned or settled.
func New(engine *policy.Engine, o Options) func(http.Handler) http.Handler {
	p := engine.Policy()
	sets := setsOf(p.Headers)
	shared := guard{
		engine: engine, observe: o.Observe, warned: o.Warned, unsettled: o.Unsettled,
		sets: sets, cors: newCORS(p, sets), proxied: proxiedIn(p),
		desks: &sync.Pool{New: func() any {
			d := new(desk)
			d.body = d.beginning.read
			return d
		}},
	}
	if p.Marks != nil {
		shared.marks = *p.Marks
	}
	shared.marks.Header = cmp.Or(shared.marks.Header, markHeader)
	for _, l := range engine.Limits() {
		shared.settles = shared.settles || l.Settles()
		shared.warns = shared.warns || l.WarnHeader != ""
		shared.says = shared.says || l.OnLimit != policy.Refuse
	}
	for way := range shared.tellers {
		teller := shared
		teller.fallen = policy.OnError(way)
		shared.tellers[way] = &teller
	}
	return func(next http.Handler) http.Handler {
		g := shared
		g.next = next
		return &g
	}
}

// guard stands before a handler. It is safe for concurrent use.
type guard struct {
	next      http.Handler
	engine    *policy.Engine
	observe   func(*policy.Verdict, *http.Request)
	warned    func(*policy.Verdict, *http.Request)
	unsettled func(error, *http.Request)
	sets      sets
	cors      *cors
	desks     *sync.Pool // *desk

	proxied []*identity.ProxyHeader
	marks   policy.Marks
	// What some limit of the policy does: it is settled by answers, it warns in them, it
	// tells the upstream of what is over it.
	settles, warns, says bool

	// fallen is the way of the verdicts whose fields it tells; tellers are those that
	// tell of each way.
	fallen  policy.OnError
	tellers [policy.Deny + 1]*guard
}

// desk is the scratch of one request. It goes back before the handler runs, and
// nothing that the handler sees lies on it.
type desk struct {
	verdict policy.Verdict
	request identity.Request
	text    []byte // of header fields
	problem []byte // of a refusal

	beginning beginning
	body      func(ctx context.Context, most int) ([]byte, bool, error) // beginning.read
}

// look lays a request on the desk.
func (d *desk) look(w http.ResponseWriter, r *http.Request, path string) {
	look(&d.request, r, path)
	if hasBody(r) {
		d.beginning = beginning{answer: w, request: r}
		d.request.Body = d.body
	}
}

// put puts the desk back.
func (g *guard) put(d *desk) {
	if d.request.Body != nil {
		d.beginning, d.request.Body = beginning{}, nil
	}
	g.desks.Put(d)
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, r, err := clean(g.engine, r)
	if err != nil {
		g.answerProblem(w, r, http.StatusBadRequest, "The request was refused: "+err.Error()+".")
		return
	}
	d := g.desks.Get().(*desk)
	d.look(w, r, path)
	v := &d.verdict
	g.engine.Check(r.Context(), &d.request, v)
	if g.observe != nil {
		g.observe(v, r)
	}
	if !v.Allowed {
		g.refuse(w, r, d)
		g.put(d)
		return
	}
	var pending *policy.Pending
	if g.settles {
		pending = g.engine.Pending(v)
	}
	r = g.onward(r, d, pending != nil && pending.Uncompressed())
	if len(v.Applied) == 0 {
		g.put(d)
		g.next.ServeHTTP(w, r)
		return
	}
	answer := newResponse(w, g.tellers[v.Fallen])
	d.text = answer.work(v, &g.sets, d.text[:0])
	delay, warnings := v.Delay, g.warningsOf(v)
	g.put(d)
	if delay > 0 {
		there := false
		if r, there = wait(r, delay); !there {
			answer.put(w.Header(), &g.sets)
			g.answerProblem(w, r, http.StatusServiceUnavailable, "The wait for the request's turn was cut short.")
			return
		}
	}
	if pending != nil || len(warnings) > 0 {
		g.watch(&watched{response: *answer, request: r, pending: pending, warnings: warnings, warned: g.warned, unsettled: g.unsettled})
		return
	}
	defer answer.finish()
	g.next.ServeHTTP(answer, r)
}
