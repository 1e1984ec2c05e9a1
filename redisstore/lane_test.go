package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/comporta/comporta"
)

// server is a Client of which the test says what it does with each call.
type server func(ctx context.Context, args []string) (any, error)

func (s server) Do(ctx context.Context, _ string, args ...string) (any, error) {
	if args[0] != "EVALSHA" {
		return nil, ServerError("ERR not for this test")
	}
	return s(ctx, args)
}
func (server) Cluster() bool { return false }
func (server) Close()        {}

// after answers a call a while later, unless ctx ends before.
func after(ctx context.Context, d time.Duration, reply string) (any, error) {
	select {
	case <-time.After(d):
		return reply, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hangs never answers.
func hangs(ctx context.Context, _ []string) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// replied is a reply to so many items: each left to the other script, or a token
// bucket found full.
func replied(args []string, careful bool) string {
	argument := args[len(args)-1]
	items := binary.LittleEndian.Uint16([]byte(argument[10:]))
	number := func(b []byte, x float64) []byte { return binary.LittleEndian.AppendUint64(b, math.Float64bits(x)) }
	b := number(nil, 1e15)
	for range items {
		if careful {
			b = append(b, statusCareful)
			continue
		}
		b = append(b, 0, 1, 0, 0)
		b = number(number(number(b, 1e15), 0), 0)
	}
	return string(b)
}

// bubble tests a store in a bubble of its own time.
func bubble(t *testing.T, client Client, test func(t *testing.T, s *Store)) {
	t.Helper()
	empty := func() { // the pool of requests, whose channels belong to one bubble
		runtime.GC()
		runtime.GC()
	}
	empty()
	defer empty()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(client, Options{Heartbeat: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		test(t, s)
		time.Sleep(s.timeout) // until the last call is given up
	})
}

// TestNobodyWaitsPastTheDeadline, however many ask a server that hangs; and
// nothing is left of it.
func TestNobodyWaitsPastTheDeadline(t *testing.T) {
	rule := compile(t, "10/s")
	bubble(t, server(hangs), func(t *testing.T, s *Store) {
		before := runtime.NumGoroutine()
		var all sync.WaitGroup
		for i := range 10_000 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Microsecond)
				start := time.Now()
				_, err := s.TakeOne(t.Context(), comporta.Key{Limit: "a", Identity: fmt.Sprint(i)}, rule, 1)
				if took := time.Since(start); err == nil || took > s.timeout {
					t.Errorf("after %v: %v", took, err)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if after := runtime.NumGoroutine(); after > before+1 { // one may probe
			t.Errorf("%d goroutines, and %d before", after, before)
		}
		if l := &s.lanes[0]; l.calls != 0 || len(l.queue) != 0 || len(l.spare) > 2*callsMost {
			t.Errorf("%d calls are out, %d requests in line, %d calls spare", l.calls, len(l.queue), len(l.spare))
		}
	})
}

// TestDeadlineIsOfTheFirstAsking: who must be asked again, behind others that came
// later, waits no longer for it.
func TestDeadlineIsOfTheFirstAsking(t *testing.T) {
	rule := compile(t, "10/s")
	first := true
	var mu sync.Mutex
	bubble(t, server(func(ctx context.Context, args []string) (any, error) {
		mu.Lock()
		careful := first
		first = false
		mu.Unlock()
		if careful {
			return after(ctx, 40*time.Millisecond, replied(args, true))
		}
		return hangs(ctx, args)
	}), func(t *testing.T, s *Store) {
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond / 4)
				start := time.Now()
				_, err := s.TakeOne(t.Context(), comporta.Key{Limit: "a", Identity: fmt.Sprint(i)}, rule, 1)
				if took := time.Since(start); took > s.timeout {
					t.Errorf("request %d after %v: %v", i, took, err)
				}
			})
		}
		all.Wait()
	})
}

// TestOwnDeadlineIsKept by who makes the call for all, too.
func TestOwnDeadlineIsKept(t *testing.T) {
	rule := compile(t, "10/s")
	bubble(t, server(hangs), func(t *testing.T, s *Store) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := s.TakeOne(ctx, alice, rule, 1)
		if took := time.Since(start); took != 5*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// TestStringsAreTheCallersAgain when it gives up waiting: no other is taken from,
// and who shares its call is answered.
func TestStringsAreTheCallersAgain(t *testing.T) {
	rule := compile(t, "10/s")
	asked := map[string]int{}
	bubble(t, server(func(_ context.Context, args []string) (any, error) {
		for _, key := range args[3 : len(args)-1] {
			asked[key]++
		}
		time.Sleep(20 * time.Millisecond)
		return replied(args, false), nil
	}), func(t *testing.T, s *Store) {
		ask := func(ctx context.Context, identity string) error {
			_, err := s.TakeOne(ctx, comporta.Key{Limit: "a", Identity: identity}, rule, 1)
			return err
		}
		var all sync.WaitGroup
		for i := range callsMost { // no further call may go out
			all.Go(func() { ask(t.Context(), fmt.Sprint(i)) })
			synctest.Wait()
			time.Sleep(time.Millisecond) // for a server that is far away
		}
		ctx, cancel := context.WithCancel(t.Context())
		buffer := []byte("first")
		all.Go(func() {
			if err := ask(ctx, unsafe.String(&buffer[0], len(buffer))); !errors.Is(err, context.Canceled) {
				t.Error("given up, and", err)
			}
			copy(buffer, "other")
		})
		synctest.Wait()
		all.Go(func() {
			if err := ask(t.Context(), "second"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
		for key, n := range asked {
			if n != 1 {
				t.Error(key, n)
			}
		}
		if len(asked) != callsMost+1 {
			t.Errorf("%d keys are asked for: the one given up went out too", len(asked))
		}
	})
}
