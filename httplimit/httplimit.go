package httplimit

import (
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
// An allowed request costs under a microsecond and two allocations, besides the
// one of the client's identity.
func New(engine *policy.Engine, o Options) func(http.Handler) http.Handler {
	p := engine.Policy()
	sets := setsOf(p.Headers)
	shared := guard{
		engine: engine, observe: o.Observe,
		sets: sets, cors: newCORS(p.CORS, sets),
		desks: &sync.Pool{New: func() any { return new(desk) }},
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
	next    http.Handler
	engine  *policy.Engine
	observe func(*policy.Verdict, *http.Request)
	sets    sets
	cors    *cors
	desks   *sync.Pool // *desk

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
	body    []byte // of a refusal
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, r, err := clean(g.engine, r)
	if err != nil {
		g.answerProblem(w, r, http.StatusBadRequest, "The request was refused: "+err.Error()+".")
		return
	}
	d := g.desks.Get().(*desk)
	look(&d.request, r, path)
	v := &d.verdict
	g.engine.Check(r.Context(), &d.request, v)
	if g.observe != nil {
		g.observe(v, r)
	}
	if !v.Allowed {
		g.refuse(w, r, d)
		g.desks.Put(d)
		return
	}
	if len(v.Applied) == 0 {
		g.desks.Put(d)
		g.next.ServeHTTP(w, r)
		return
	}
	answer := newResponse(w, g.tellers[v.Fallen])
	d.text = answer.work(v, &g.sets, d.text[:0])
	delay := v.Delay
	g.desks.Put(d)
	if delay > 0 {
		there := false
		if r, there = wait(r, delay); !there {
			answer.put(w.Header(), &g.sets)
			g.answerProblem(w, r, http.StatusServiceUnavailable, "The wait for the request's turn was cut short.")
			return
		}
	}
	defer answer.finish()
	g.next.ServeHTTP(answer, r)
}
