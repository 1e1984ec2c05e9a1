package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta/internal/redistest"
)

// direct is a Client of one connection a call.
type direct struct{ *redistest.Server }

func (d direct) Do(_ context.Context, _ string, args ...string) (any, error) {
	v, err := d.Server.Do(args...)
	var server redistest.Error
	if errors.As(err, &server) {
		err = ServerError(server)
	}
	return v, err
}
func (direct) Cluster() bool { return false }
func (direct) Close()        {}

// announcer is an instance on a server, with what it last heard.
func announcer(s *redistest.Server, every time.Duration) (i *instances, heard *int64) {
	heard = new(int64)
	return newInstances(instancesOptions{
		client: direct{s}, prefix: s.Prefix, every: every, deadline: 5 * time.Second, now: monotonic,
		heard: func(server, sent, replied int64) {
			if sent <= replied {
				*heard = server
			}
		},
	}), heard
}

func mustBeat(t *testing.T, i *instances, times int) {
	t.Helper()
	for range times {
		if err := i.beat(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInstancesCountEachOther(t *testing.T) {
	s := redistest.Start(t)
	a, heard := announcer(s, time.Minute)
	b, _ := announcer(s, time.Minute)
	c, _ := announcer(s, time.Minute)
	if n := a.count(); n != 1 {
		t.Fatalf("%d before anything is known, want 1", n)
	}
	for _, i := range []*instances{a, b, c, a} {
		mustBeat(t, i, 1)
	}
	if a.count() != 3 || b.count() != 2 || c.count() != 3 {
		t.Fatalf("%d, %d, %d instances, want 3, 2, 3", a.count(), b.count(), c.count())
	}
	if away := time.Since(time.UnixMicro(*heard)).Abs(); away > time.Minute {
		t.Fatalf("the server's time is %v away", away)
	}
	if ttl := s.MustDo("PTTL", s.Prefix+":instances").(int64); ttl < 179_000 {
		t.Fatalf("the key expires after %d ms: sooner than an instance is dead", ttl)
	}
	c.close()
	mustBeat(t, a, missed-1)
	if n := a.count(); n != 3 {
		t.Fatalf("%d: a smaller count is believed when it stays", n)
	}
	mustBeat(t, a, 1)
	if n := a.count(); n != 2 {
		t.Fatalf("%d after one was closed, want 2", n)
	}
	never, _ := announcer(s, time.Minute)
	never.close() // it was never there
}

// A server that comes and goes has heard from nobody else yet each time.
func TestCountsAfterASilenceAreNotBelieved(t *testing.T) {
	i := newInstances(instancesOptions{every: time.Second})
	at := int64(time.Hour)
	note := func(later time.Duration, live int64, want int) {
		t.Helper()
		at += int64(later)
		i.note(live, at)
		if got := i.count(); got != want {
			t.Errorf("%d instances, want %d", got, want)
		}
	}
	note(0, 5, 5)
	for range 10 {
		note(4*time.Second, 1, 5)
		note(200*time.Millisecond, 5, 5)
	}
	for range 10 {
		note(4*time.Second, 1, 5)
	}
	note(4*time.Second, 6, 6)
	for range missed - 1 {
		note(time.Second, 1, 6)
	}
	note(time.Second, 1, 1)
}

func TestDeadInstancesAreNotCounted(t *testing.T) {
	s := redistest.Start(t)
	dead, _ := announcer(s, time.Millisecond)
	mustBeat(t, dead, 1)
	key := s.Prefix + ":instances"
	s.MustDo("ZADD", key, "9000000000000000", "from a clock that was far ahead")
	a, _ := announcer(s, time.Minute)
	redistest.Until(t, 5*time.Second, func() error {
		mustBeat(t, a, missed)
		if n := a.count(); n != 1 {
			return fmt.Errorf("%d instances, want 1", n)
		}
		return nil
	})
	if got := s.MustDo("ZRANGE", key, "0", "-1"); !cmp.Equal(got, []any{a.name}) {
		t.Fatal(got)
	}
}

// A heartbeat fails where takes would, and is well again when they are.
func TestHeartbeatFindsWhatTakesWould(t *testing.T) {
	s := redistest.Start(t, "--maxmemory-policy", "noeviction")
	for want, c := range map[string]struct{ ill, well []string }{
		"OOM":      {[]string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}},
		"READONLY": {[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
		"NOREPLICAS": {[]string{"CONFIG", "SET", "min-replicas-to-write", "1"},
			[]string{"CONFIG", "SET", "min-replicas-to-write", "0"}},
	} {
		a, _ := announcer(s, time.Minute)
		gone, _ := announcer(s, time.Millisecond) // so that there is something to remove
		mustBeat(t, gone, 1)
		mustBeat(t, a, 1)
		s.MustDo(c.ill...)
		if err := a.beat(t.Context()); cause(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
		s.MustDo(c.well...)
		mustBeat(t, a, 1)
	}
}

func TestHeartbeatTakesItsKeyBack(t *testing.T) {
	s := redistest.Start(t)
	s.MustDo("SET", s.Prefix+":instances", "not ours")
	a, _ := announcer(s, time.Minute)
	mustBeat(t, a, 1)
	if n := a.count(); n != 1 {
		t.Fatal(n)
	}
}

// silent is a Client that notes its commands and does as it is told.
type silent struct {
	mu    sync.Mutex
	asked []string
	reply func() (any, error)
}

func (s *silent) Do(_ context.Context, _ string, args ...string) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, args[0])
	return s.reply()
}
func (*silent) Cluster() bool { return false }
func (*silent) Close()        {}

func (s *silent) count() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// The bubble of synctest ends only when the goroutine has.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ill error
		client := &silent{reply: func() (any, error) { return []any{int64(2), int64(1)}, ill }}
		i := newInstances(instancesOptions{
			client: client, prefix: "p", every: time.Second, deadline: 50 * time.Millisecond,
			now: func() int64 { return 1 }, heard: func(_, _, _ int64) {},
		})
		o := newOutages(t)
		o.answer(readonly)
		i.start(o.breaker)
		if n := client.count(); n != 1 {
			t.Fatalf("%d heartbeats at the start, want 1", n)
		}
		time.Sleep(10 * time.Second)
		if n := client.count(); n != 11 || i.count() != 2 {
			t.Fatalf("%d heartbeats after ten seconds, want 11", n)
		}
		client.mu.Lock()
		ill = readonly
		client.mu.Unlock()
		time.Sleep(10 * time.Second)
		if n := client.count(); n != 14 || o.allow() == nil {
			t.Fatalf("%d heartbeats, want three that fail for longer than a second and then none", n-11)
		}
		i.close()
		if n := client.count(); n != 15 || client.asked[14] != "ZREM" {
			t.Fatal("it did not take itself out:", client.asked)
		}
	})
}

func TestHeartbeatOfAnotherForm(t *testing.T) {
	for _, reply := range []any{nil, "OK", []any{int64(1)}, []any{int64(1), "2"}, []any{"1", int64(2)}} {
		i := newInstances(instancesOptions{
			client: &silent{reply: func() (any, error) { return reply, nil }}, every: time.Second, deadline: time.Second,
			now: func() int64 { return 1 }, heard: func(_, _, _ int64) { t.Error("nothing was heard") },
		})
		if err := i.beat(t.Context()); err == nil || i.count() != 1 {
			t.Errorf("%v: %v", reply, err)
		}
	}
}
