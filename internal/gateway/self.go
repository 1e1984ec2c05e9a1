package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// selfName is the name of the limit that asking for one's own limits stands under.
const selfName = "self-service"

// A SelfService tells clients of the limits that they are under.
type SelfService struct {
	path  string
	limit *policy.Engine // that asking stands under, per address
}

// NewSelfService is what the engine's clients may ask for at a path. Asking stands
// under a limit of its own in the same store, and under none of the engine's.
func NewSelfService(said *config.SelfService, engine *policy.Engine, store comporta.Store, o policy.Options) (*SelfService, error) {
	p := engine.Policy()
	for _, l := range p.Limits {
		if l.Name == selfName {
			return nil, fmt.Errorf("limit %q has the name of the one that asking at %s stands under: give it another, or write self_service: off", l.Name, said.Path)
		}
	}
	address := p.Address
	if address == nil {
		address = new(identity.Address)
	}
	limit, err := policy.NewEngine(&policy.Policy{
		Limits:  []*policy.Limit{{Name: selfName, Per: address, Limit: said.Limit, OnError: p.OnError}},
		Address: p.Address, Preflight: p.Preflight, IPv6Outer: p.IPv6Outer, Paths: p.Paths, Headers: p.Headers, CORS: p.CORS, Zone: p.Zone, OnError: p.OnError,
	}, store, o)
	if err != nil {
		return nil, err
	}
	return &SelfService{said.Path, limit}, nil
}

// self answers who asks for their own limits, and passes all else on.
func (s *reign) self(next http.Handler) http.Handler {
	if s.SelfService == nil {
		return next
	}
	limited := httplimit.New(s.SelfService.limit, httplimit.Options{Observe: s.observe})
	answer := limited(http.HandlerFunc(s.tellSelf))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == s.SelfService.path {
			answer.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownLimits is the document. Times are whole seconds, rounded up, as in header fields.
type ownLimits struct {
	Limits []ownLimit `json:"limits"`
}

// ownLimit is one limit as it stands for who asks. Limit is what a full budget
// holds; Window the time over which it does, 0 where there is none to name; Retry
// when a request of one unit would pass, null for never.
type ownLimit struct {
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Plan      string `json:"plan,omitempty"`
	Unlimited bool   `json:"unlimited,omitempty"`
	*ownNumbers
}

type ownNumbers struct {
	Limit     int64  `json:"limit"`
	Window    int64  `json:"window"`
	Remaining int64  `json:"remaining"`
	Reset     int64  `json:"reset"`
	Retry     *int64 `json:"retry"`
}

// verdicts are used again: their memory is.
var verdicts = sync.Pool{New: func() any { return new(policy.Verdict) }}

// tellSelf answers with the limits of whoever asks.
func (s *reign) tellSelf(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	s.allow(h, r)
	switch {
	case r.Method == http.MethodOptions:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		if h.Get("Access-Control-Allow-Origin") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, HEAD")
			h.Set("Access-Control-Allow-Headers", "*, Authorization") // the wildcard leaves that one out
		}
		w.WriteHeader(http.StatusNoContent)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		s.problem(w, r, http.StatusMethodNotAllowed, "Limits are only told: ask with GET.")
		return
	}
	v := verdicts.Get().(*policy.Verdict)
	defer verdicts.Put(v)
	s.Engine.LookAtCaller(r.Context(), httplimit.Request(r), v)
	if v.Failed != nil && v.Fallen != policy.Local {
		h.Set("Retry-After", "1")
		s.problem(w, r, http.StatusServiceUnavailable, "The limits cannot be looked up at the moment.")
		return
	}
	text, err := json.Marshal(ownLimits{own(v)})
	if err != nil { // texts and numbers: it cannot be
		s.problem(w, r, http.StatusInternalServerError, "The limits cannot be told.")
		return
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(text, '\n')) // who does not take the answer has gone
	}
}

// own are the limits of a verdict that may be told of.
func own(v *policy.Verdict) []ownLimit {
	limits := []ownLimit{} // null would be none to be known
	for i := range v.Applied {
		a := &v.Applied[i]
		if !a.Shown {
			continue
		}
		l := a.Rule.Limit()
		told := ownLimit{Name: a.Limit.Name, Algorithm: l.Algorithm.String(), Unlimited: l.Unlimited}
		if plan, is := strings.CutPrefix(a.From, "plan "); is {
			told.Plan = plan
		}
		if !l.Unlimited {
			d := &a.Decision
			told.ownNumbers = &ownNumbers{
				Limit: a.Rule.Full(), Window: upSeconds(a.Rule.WindowAt(v.Now)), Remaining: d.Remaining, Reset: upSeconds(a.Rule.SpreadAfter(d)),
			}
			if d.RetryAfter != comporta.Never {
				retry := upSeconds(d.RetryAfter)
				told.Retry = &retry
			}
		}
		limits = append(limits, told)
	}
	return limits
}

// upSeconds is d in whole seconds, rounded up.
func upSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
