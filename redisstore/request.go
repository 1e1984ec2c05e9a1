package redisstore

import (
	"sync"

	"github.com/comporta/comporta"
)

// A request is one step that somebody waits for, with memory of its own: whoever
// gives up waiting may leave it to the call that it is in.
type request struct {
	takes []comporta.Take
	// settlement is asked instead of takes, where it is set.
	settlement *comporta.Settlement
	// wish, likewise.
	wish *wish
	// denied: another slot's limit has denied already, so that nothing is charged
	// here but attempts.
	denied bool
	// careful: the script for token buckets has left it to the other.
	careful bool

	out  []comporta.Taken
	err  error
	done chan struct{} // has room for one
	// then is told the end instead of done where nobody waits. It may not block.
	then func(*request)

	slot          uint16 // of its keys, in a cluster
	entered       int64  // when it came, on the store's monotonic clock
	sent, replied int64  // when its call went out and came back

	next *request // in the same item of a call
	take [1]comporta.Take
	took [1]comporta.Taken
}

var requests = sync.Pool{New: func() any { return &request{done: make(chan struct{}, 1)} }}

// newRequest is a request of now, with room for n decisions.
func newRequest(n int) *request {
	r := requests.Get().(*request)
	r.denied, r.careful, r.err = false, false, nil
	r.entered = monotonic()
	if n == 1 {
		r.takes, r.out = r.take[:], r.took[:]
	} else {
		r.takes, r.out = make([]comporta.Take, n), make([]comporta.Taken, n)
	}
	return r
}

// free gives a request back that no call holds any more.
func (r *request) free() {
	r.takes, r.out, r.settlement, r.wish, r.then, r.next = nil, nil, nil, nil, nil, nil
	r.take[0] = comporta.Take{}
	requests.Put(r)
}
