package redisstore

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"strconv"
	"sync"
	"time"
)

//go:embed instances.lua
var announcing string

// missed is how many heartbeats an instance may miss before the others take it
// for dead.
const missed = 3

type instancesOptions struct {
	client   Client
	prefix   string
	every    time.Duration // between heartbeats
	deadline time.Duration // of each
	now      func() int64  // monotonic nanoseconds

	// heard is told the server's time in µs, and when it was asked and told.
	heard func(server, sent, replied int64)
	// failed, where it is set, is told what a heartbeat met instead of an answer.
	failed func(error)
}

// instances announces this one to the others and counts them, in one key of the
// server's: prefix:instances. It is safe for concurrent use.
type instances struct {
	instancesOptions
	name string

	stop  context.CancelFunc
	ended sync.WaitGroup

	mu     sync.Mutex
	recent [missed]int64 // the last counts
	beats  int
	last   int64 // when the last one came
}

// newInstances announces nothing until start.
func newInstances(o instancesOptions) *instances {
	return &instances{instancesOptions: o, name: rand.Text(), stop: func() {}}
}

// start announces this instance at once and then at each heartbeat, until close.
// While the breaker is open it leaves that to the probe.
func (i *instances) start(b *breaker) {
	ctx, stop := context.WithCancel(context.Background())
	i.stop = stop
	i.ended.Go(func() {
		tick := time.NewTicker(i.every)
		defer tick.Stop()
		for {
			if b.allow() == nil {
				b.beaten(ctx, i.beat(ctx))
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// count is how many instances live as far as last known, at least 1. It is the
// most of the last counts, but those that followed a silence: a server that comes
// back, empty or with all others expired, hears from them a heartbeat later.
func (i *instances) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	most := int64(1)
	for _, n := range i.recent {
		most = max(most, n)
	}
	return int(most)
}

// beat announces this instance once. It writes, and so fails where takes would:
// the breaker probes with it.
func (i *instances) beat(ctx context.Context) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, i.deadline)
	defer cancel()
	sent := i.now()
	alive := strconv.FormatInt(missed*i.every.Microseconds(), 10)
	reply, err := i.client.Do(ctx, i.key(), "EVAL", announcing, "1", i.key(), i.name, alive)
	if err != nil {
		if i.failed != nil && caller.Err() == nil {
			i.failed(err)
		}
		return err
	}
	replied := i.now()
	live, server, ok := pair(reply)
	if !ok {
		return errors.New("redisstore: the reply to a heartbeat has another form: is this Redis or Valkey?")
	}
	i.note(live, replied)
	i.heard(server, sent, replied)
	return nil
}

// note keeps a count that came now.
func (i *instances) note(live, now int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	silence := now-i.last > 2*int64(i.every)
	i.last = now
	if at := i.beats % missed; i.beats == 0 || !silence || live > i.recent[at] {
		i.recent[at] = live
		i.beats++
	}
}

// close ends the heartbeats, and takes this instance out within one deadline.
func (i *instances) close() {
	i.stop()
	i.ended.Wait()
	i.mu.Lock()
	announced := i.last > 0
	i.mu.Unlock()
	if !announced {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), i.deadline)
	defer cancel()
	// Where it fails, the others miss its heartbeats.
	_, _ = i.client.Do(ctx, i.key(), "ZREM", i.key(), i.name)
}

func (i *instances) key() string { return i.prefix + ":instances" }

func pair(reply any) (a, b int64, ok bool) {
	two, ok := reply.([]any)
	if !ok || len(two) != 2 {
		return 0, 0, false
	}
	a, first := two[0].(int64)
	b, second := two[1].(int64)
	return a, b, first && second
}
