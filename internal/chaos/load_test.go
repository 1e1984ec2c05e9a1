package chaos

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An ask is one request to come. It goes to the load balancer unless at is another URL.
type ask struct{ path, client, tenant, at string }

// An answer is what became of one.
type answer struct {
	ask
	begun  time.Time // when it was asked
	took   time.Duration
	status int    // 0: none came
	store  string // Comporta-Store
	later  string // Retry-After
	lost   int    // how often it was sent and the answer never came
	err    error
}

type answers []answer

// of are those to asks of a path and a client; "" is any.
func (all answers) of(path, client string) (out answers) {
	for _, a := range all {
		if (path == "" || a.path == path) && (client == "" || a.client == client) {
			out = append(out, a)
		}
	}
	return out
}

// since are those that were asked for from an instant on, and until those before.
func (all answers) since(at time.Time) (out answers) {
	for _, a := range all {
		if !a.begun.Before(at) {
			out = append(out, a)
		}
	}
	return out
}

func (all answers) until(at time.Time) (out answers) {
	for _, a := range all {
		if a.begun.Add(a.took).Before(at) {
			out = append(out, a)
		}
	}
	return out
}

// count is how many have a status.
func (all answers) count(status int) (n int) {
	for _, a := range all {
		if a.status == status {
			n++
		}
	}
	return n
}

// lost is how often an answer to one of them did not come: nobody knows whether
// a unit was spent for it.
func (all answers) lost() (n int) {
	for _, a := range all {
		n += a.lost
	}
	return n
}

// passed is how many did, by client.
func (all answers) passed() map[string]int {
	n := map[string]int{}
	for _, a := range all {
		if n[a.client] += 0; a.status == http.StatusOK {
			n[a.client]++
		}
	}
	return n
}

// byStore are those that the store decided.
func (all answers) byStore() (out answers) {
	for _, a := range all {
		if a.store == "" {
			out = append(out, a)
		}
	}
	return out
}

// only fails the test where there is an answer with another status.
func (all answers) only(t testing.TB, what string, allowed ...int) {
	t.Helper()
	wrong := map[string]int{}
next:
	for _, a := range all {
		for _, s := range allowed {
			if a.status == s {
				continue next
			}
		}
		wrong[fmt.Sprint("status ", a.status, " store ", a.store, " error ", a.err)]++
	}
	if len(wrong) > 0 {
		t.Errorf("%s: of %d answers not only %v, but: %v", what, len(all), allowed, wrong)
	}
}

// do asks once. Where a connection that was used before ends without an answer,
// net/http sends the request again by itself.
func (f *fleet) do(q ask) answer {
	if q.at == "" {
		q.at = f.url
	}
	a := answer{ask: q, begun: time.Now()}
	r, err := http.NewRequest(http.MethodGet, q.at+q.path, nil)
	if err != nil {
		panic(err) // our own paths
	}
	r.Header.Set("X-Forwarded-For", q.client)
	if q.tenant != "" {
		r.Header.Set("X-Tenant", q.tenant)
	}
	var sent atomic.Int64
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { sent.Add(1) },
	}))
	res, err := f.client.Do(r)
	if err == nil {
		a.status, a.store, a.later = res.StatusCode, res.Header.Get("Comporta-Store"), res.Header.Get("Retry-After")
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		f.answered.Add(1)
	}
	a.took, a.err = time.Since(a.begun), err
	a.lost = max(int(sent.Load())-1, 0)
	if a.status == http.StatusBadGateway {
		a.lost++
	}
	return a
}

// burst asks n times over some connections, as fast as they can.
func (f *fleet) burst(connections, n int, next func(i int) ask) answers {
	var all sync.WaitGroup
	var asked atomic.Int64
	got := make(answers, n)
	for range connections {
		all.Go(func() {
			for {
				i := int(asked.Add(1)) - 1
				if i >= n {
					return
				}
				got[i] = f.do(next(i))
			}
		})
	}
	all.Wait()
	return got
}

// same asks the same each time.
func same(path, client string) func(int) ask {
	return func(int) ask { return ask{path: path, client: client} }
}

// A stream asks at an even pace over many connections until it is stopped.
type stream struct {
	workers sync.WaitGroup
	quit    chan struct{}

	mu  sync.Mutex
	got answers
}

// stream begins to ask: rate times a second, over as many connections as are
// needed and 64 at most.
func (f *fleet) stream(rate int, next func(i int) ask) *stream {
	s := &stream{quit: make(chan struct{})}
	turns := make(chan int, 64)
	s.workers.Go(func() {
		defer close(turns)
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-s.quit:
				return
			case <-tick.C:
			}
			select {
			case turns <- i:
			default: // all are busy
			}
		}
	})
	for range 64 {
		s.workers.Go(func() {
			for i := range turns {
				a := f.do(next(i))
				s.mu.Lock()
				s.got = append(s.got, a)
				s.mu.Unlock()
			}
		})
	}
	return s
}

// soFar are the answers up to now.
func (s *stream) soFar() answers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[:len(s.got):len(s.got)]
}

// stop ends it and gives all answers.
func (s *stream) stop() answers {
	close(s.quit)
	s.workers.Wait()
	return s.got
}
