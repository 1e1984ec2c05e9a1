package probe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// A watch looks at the answers to the user's own request as they come: where they
// turn from one status to another that nobody called a refusal, the probe ends,
// since it would count refusals as admitted.
type watch struct {
	ctx     context.Context // of the probe
	options *Options
	stop    context.CancelCauseFunc

	mu       sync.Mutex
	first    int // status
	statuses map[int]int
	lost     int   // without an answer
	err      error // of the first that was lost
	turned   int   // the status that ended it
}

// turns are how many answers of another status, or none at all, end a probe: one may
// have its own reason.
const turns = 3

// see is told of each shot, one at a time.
func (w *watch) see(s *Shot) {
	if !plain(s.Request) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Status == 0 {
		if errors.Is(s.Err, context.Canceled) || w.ctx.Err() != nil {
			return // it was called back
		}
		if w.lost++; w.err == nil {
			w.err = s.Err
		}
		if len(w.statuses) == 0 && w.lost == turns {
			w.stop(errors.New("the server does not answer"))
		}
		return
	}
	if w.statuses == nil {
		w.first, w.statuses = s.Status, map[int]int{}
	}
	w.statuses[s.Status]++
	if s.Status == w.first || s.Denied() || s.Status < 400 || s.Status >= 500 || w.turned != 0 {
		return
	}
	if w.statuses[s.Status] == turns {
		w.turned = s.Status
		w.stop(fmt.Errorf("answers turned from %d to %d", w.first, s.Status))
	}
}

// check says how the request itself was answered.
func (w *watch) check() Check {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := Check{Name: "answers", Asks: "Is the request answered as it should be?", Verdict: Good}
	failed := 0
	for status := range w.statuses {
		if status >= 500 && status != w.options.Target.Denied {
			failed = status
		}
	}
	c.Seen = w.counts()
	if len(w.statuses) > 0 {
		c.Seen = "status " + c.Seen
	}
	switch {
	case len(w.statuses) == 0 && w.lost == 0:
		c.Verdict, c.Seen = Unknown, "nothing was sent"
	case len(w.statuses) == 0:
		c.Verdict, c.Seen = Bad, fmt.Sprintf("no answer to any of %d requests: %s", w.lost, plainly(w.err))
		c.Why, c.Todo = "nothing can be told of a server that does not answer", "look whether the server runs there, and the URL is right"
	case w.turned != 0:
		c.Verdict = Unknown
		c.Why = "what refuses with another status than 429 looks like an answer"
		c.Todo = fmt.Sprintf("if %d is how it refuses who is over its limit, add --denied %d", w.turned, w.turned)
	case failed != 0 && w.first < 400:
		c.Verdict = Bad
		c.Why = "a probe does not go on where a server fails"
		c.Todo = fmt.Sprintf("if %d is how it refuses who is over its limit, as nginx does with 503 unless limit_req_status says otherwise, add --denied %d; if it is not, the server fails under as little load as this", failed, failed)
	case failed != 0:
		c.Verdict = Bad
		c.Why, c.Todo = "a probe does not go on where a server fails", "look at the server first"
	case w.first == http.StatusUnauthorized || w.first == http.StatusForbidden:
		c.Verdict = Warn
		c.Why, c.Todo = "who is not let in may have another limit than who is", "give a key that is let in: -H 'X-API-Key: k1'"
	case w.first >= 400 && w.first != http.StatusTooManyRequests && w.first != w.options.Target.Denied:
		c.Verdict = Warn
		c.Why, c.Todo = "what does not exist may have another limit than what does", "look whether the URL, the method (-X) and the body (-d) are right"
	case w.first >= 300 && w.first < 400:
		c.Verdict = Warn
		c.Why, c.Todo = "redirects are not followed: what stands behind them may have another limit", "give the URL that it leads to"
	}
	return c
}

// counts are the statuses, and how often each came.
func (w *watch) counts() string {
	var all []string
	for _, status := range slices.Sorted(maps.Keys(w.statuses)) {
		all = append(all, fmt.Sprintf("%d (%d times)", status, w.statuses[status]))
	}
	if w.lost > 0 && len(all) > 0 {
		all = append(all, fmt.Sprintf("none (%d times)", w.lost))
	}
	return strings.Join(all, ", ")
}

// plainly is the innermost of an error: the outer ones repeat the URL, in which
// there may be a key.
func plainly(err error) string {
	if err == nil {
		return "it is not known why"
	}
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || inner.Unwrap() == nil {
			return err.Error()
		}
		err = inner.Unwrap()
	}
}
