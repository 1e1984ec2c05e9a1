package redisstore

import (
	"container/heap"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/comporta/comporta"
)

// endings are when to look at which lease: one goroutine waits for all of them.
type endings struct {
	mu   sync.Mutex
	line line
	wake chan struct{} // has room for one

	stop  context.CancelFunc
	ended sync.WaitGroup
}

type ending struct {
	at    int64
	lease *lease
}

// line is a heap, the earliest first.
type line []ending

func (l line) Len() int           { return len(l) }
func (l line) Less(i, j int) bool { return l[i].at < l[j].at }
func (l line) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *line) Push(e any)        { *l = append(*l, e.(ending)) }
func (l *line) Pop() any {
	last := (*l)[len(*l)-1]
	(*l)[len(*l)-1] = ending{}
	*l = (*l)[:len(*l)-1]
	return last
}

// start lets leases end by themselves, until close. With the tests' clock, which
// does not go by itself, they end when they are next asked.
func (ls *leases) start() {
	ctx, stop := context.WithCancel(context.Background())
	ls.ends.stop, ls.ends.wake = stop, make(chan struct{}, 1)
	if ls.store.now == nil {
		ls.ends.ended.Go(func() { ls.run(ctx) })
	}
}

// together is the time within which what ends is looked at together.
const together = time.Millisecond

func (ls *leases) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := time.Hour
		for {
			e, ok := ls.ends.next()
			if !ok {
				break
			}
			if wait = time.Duration(e.at - monotonic()); wait > 0 {
				break
			}
			ls.ends.done()
			ls.look(e)
		}
		timer.Reset(max(wait, together))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-ls.ends.wake:
		}
	}
}

// next is the earliest ending.
func (e *endings) next() (ending, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.line) == 0 {
		return ending{}, false
	}
	return e.line[0], true
}

func (e *endings) done() {
	e.mu.Lock()
	defer e.mu.Unlock()
	heap.Pop(&e.line)
}

// lookLocked has a lease looked at no later than at an instant.
func (ls *leases) lookLocked(l *lease, at int64) {
	if l.due != 0 && l.due <= at || ls.store.now != nil {
		return
	}
	l.due = at
	e := &ls.ends
	e.mu.Lock()
	first := len(e.line) == 0 || at < e.line[0].at
	heap.Push(&e.line, ending{at, l})
	e.mu.Unlock()
	if first {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// look gives back what has ended, and forgets a key that is not asked any more.
func (ls *leases) look(e ending) {
	l := e.lease
	s := ls.shard(&l.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.gone || l.due != e.at {
		return // it was looked at earlier
	}
	l.due = 0
	now := ls.now()
	ls.endLocked(l, now)
	idle := l.used + int64(l.terms.TTL)
	switch {
	case len(l.batches) > 0:
		ls.lookLocked(l, l.ends)
	case l.asking || now < idle:
		ls.lookLocked(l, max(idle, now+int64(together)))
	default:
		l.gone = true
		delete(s.leases, l.key)
		ls.size.Add(-1)
	}
}

// endLocked ends the batches whose time has come.
func (ls *leases) endLocked(l *lease, now int64) {
	kept := l.batches[:0]
	l.ends = math.MaxInt64
	for _, b := range l.batches {
		if now < b.ends {
			kept = append(kept, b)
			l.ends = min(l.ends, b.ends)
			continue
		}
		l.left -= b.left
		ls.giveBackLocked(l.key, l.rule, b)
	}
	l.batches = kept
}

// dropLocked ends all batches of a lease.
func (ls *leases) dropLocked(l *lease) {
	for _, b := range l.batches {
		ls.giveBackLocked(l.key, l.rule, b)
	}
	l.batches, l.left, l.most, l.ends = l.batches[:0], 0, 0, math.MaxInt64
}

// giveBackLocked gives back what is left of a batch, unless the store is closed.
func (ls *leases) giveBackLocked(key comporta.Key, rule *comporta.Rule, b batch) {
	if ls.closed.Load() {
		ls.lost.Add(b.left)
		return
	}
	ls.sendBack(key, rule, b)
}

// sendBack settles what is left of a batch to nothing: each unit is used, settled
// or given back, and so no unit comes back twice. Where it fails the units are
// lost until they would have refilled.
func (ls *leases) sendBack(key comporta.Key, rule *comporta.Rule, b batch) {
	switch {
	case b.left == 0:
		return
	case ls.store.breaker.allow() != nil:
		ls.lost.Add(b.left)
		return
	}
	ls.out.Add(1)
	r := newRequest(1)
	r.settlement = &comporta.Settlement{Key: key, Rule: rule, Taken: comporta.Receipt{At: b.at, Cost: b.left}}
	r.then = func(r *request) {
		if r.err == nil {
			ls.returned.Add(b.left)
			ls.store.known.drop(&key, r.replied)
		} else {
			ls.lost.Add(b.left)
		}
		r.free()
		ls.out.Done()
	}
	lane, slot := ls.store.laneOf(key.Identity)
	r.slot = slot
	lane.put(r)
	lane.flush()
}

// LeaseStats are the numbers of a store's leases.
type LeaseStats struct {
	// Granted leases hold Leased units in all.
	Granted, Leased int64
	// Served are the takes that were answered without asking.
	Served int64
	// Returned units went back unused; Lost are those that could not.
	Returned, Lost int64
}

func (ls *leases) stats() LeaseStats {
	st := LeaseStats{
		Granted: ls.granted.Load(), Leased: ls.leased.Load(), Returned: ls.returned.Load(), Lost: ls.lost.Load(),
	}
	for i := range ls.shards {
		s := &ls.shards[i]
		s.mu.Lock()
		st.Served += s.served
		s.mu.Unlock()
	}
	return st
}

// atOnce is how many keys' leases close gives back at a time.
const atOnce = 1024

// close gives back all that is held and waits until that is done or has failed.
// From then on every take is asked of the store.
func (ls *leases) close() {
	ls.ends.stop()
	ls.ends.ended.Wait()
	ls.closed.Store(true)
	var all []*lease
	for i := range ls.shards {
		s := &ls.shards[i]
		s.mu.Lock()
		for _, l := range s.leases {
			l.gone = true
			all = append(all, l)
		}
		clear(s.leases)
		s.mu.Unlock()
	}
	for some := range slices.Chunk(all, atOnce) {
		for _, l := range some {
			for _, b := range l.batches {
				ls.sendBack(l.key, l.rule, b)
			}
		}
		ls.out.Wait()
	}
	ls.out.Wait()
}
