package rueidis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/redisstore/rueidis"
	"github.com/google/go-cmp/cmp"
)

const deadline = 50 * time.Millisecond

func open(t *testing.T, url string) *rueidis.Client {
	t.Helper()
	a, err := redisstore.ParseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := rueidis.Open(a, rueidis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// do asks within the deadline.
func do(c redisstore.Client, key string, args ...string) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	return c.Do(ctx, key, args...)
}

// heals waits until calls with the key work, and says how long that took.
func heals(t *testing.T, c redisstore.Client, bound time.Duration, key string) time.Duration {
	t.Helper()
	start := time.Now()
	redistest.Until(t, bound, func() error {
		_, err := do(c, key, "INCR", key)
		return err
	})
	return time.Since(start)
}

func TestRepliesAreOfFourKinds(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, s.URL())
	for _, tc := range []struct {
		args []string
		want any
	}{
		{[]string{"SET", s.Prefix + "a", "x"}, "OK"},
		{[]string{"GET", s.Prefix + "a"}, "x"},
		{[]string{"GET", s.Prefix + "none"}, nil},
		{[]string{"STRLEN", s.Prefix + "a"}, int64(1)},
		{[]string{"EVAL", "return {1, 'a\\r\\n\\0', false, {}, {'b', 2.9}}", "0"}, []any{int64(1), "a\r\n\x00", nil, []any{}, []any{"b", int64(2)}}},
		{[]string{"CONFIG", "GET", "appendonly"}, []any{"appendonly", "no"}},
		{[]string{"EVALSHA", strings.Repeat("0", 40), "1", "k"}, redisstore.ServerError("NOSCRIPT No matching script.")}, // Redis adds what to do, Valkey does not
		{[]string{"GET"}, redisstore.ServerError("ERR wrong number of arguments for 'get' command")},
		{[]string{"EVAL", "return redis.error_reply('MINE is this')", "0"}, redisstore.ServerError("MINE is this")},
		{[]string{"HGET", s.Prefix + "a", "f"}, redisstore.ServerError("WRONGTYPE Operation against a key holding the wrong kind of value")},
	} {
		got, err := c.Do(t.Context(), s.Prefix, tc.args...)
		if want, ok := tc.want.(redisstore.ServerError); ok {
			if said, ok := err.(redisstore.ServerError); !ok || !strings.HasPrefix(string(said), string(want)) || got != nil {
				t.Errorf("%v: %v, %v; want %v", tc.args, got, err, want)
			}
			continue
		}
		if err != nil || !cmp.Equal(got, tc.want) {
			t.Errorf("%v: %#v, %v; want %#v", tc.args, got, err, tc.want)
		}
	}
	for _, args := range [][]string{nil, {""}, {"subscribe", "x"}} {
		if _, err := c.Do(t.Context(), "", args...); err == nil {
			t.Errorf("%q was sent", args)
		}
	}
}

func TestAPausedServerCostsTheDeadlineAndNoMore(t *testing.T) {
	s := redistest.StartOwn(t)
	c := open(t, s.URL())
	heals(t, c, time.Second, "a")
	before := runtime.NumGoroutine()
	s.Pause()
	// Long enough for connections to be given up and made again, in vain.
	for start := time.Now(); time.Since(start) < 2500*time.Millisecond; {
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				start := time.Now()
				if _, err := do(c, "a", "INCR", "a"); err == nil {
					t.Error("a paused server answered")
				}
				if took := time.Since(start); took > deadline+100*time.Millisecond {
					t.Errorf("a call took %v", took)
				}
			})
		}
		calls.Wait()
	}
	s.Resume()
	heals(t, c, time.Second, "a")
	redistest.Until(t, 3*time.Second, func() error {
		if n := runtime.NumGoroutine(); n > before+10 {
			return fmt.Errorf("%d goroutines, %d before", n, before)
		}
		return nil
	})
}

// More calls at a time than there have been need more connections, which a server
// that hangs accepts and then says nothing on.
func TestMoreCallsThanConnectionsKeepTheDeadline(t *testing.T) {
	s := redistest.StartOwn(t)
	c := open(t, s.URL())
	if _, err := c.Do(t.Context(), "k", "PING"); err != nil { // makes one
		t.Fatal(err)
	}
	s.Pause()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			began := time.Now()
			if _, err := c.Do(ctx, "k", "PING"); err == nil {
				t.Error("a paused server answered")
			}
			if took := time.Since(began); took > deadline+250*time.Millisecond {
				t.Errorf("a call with %v took %v", deadline, took)
			}
		})
	}
	all.Wait()
}

func TestACommandThatMayHaveRunIsNotSentAgain(t *testing.T) {
	s := redistest.StartOwn(t)
	proxy := redistest.StartProxy(t, s.Addr)
	c := open(t, "redis://"+proxy.Addr)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	proxy.Cut("INCR")
	for range 20 {
		if _, err := c.Do(ctx, "n", "INCR", "n"); err == nil {
			t.Error("the proxy let a reply through")
		}
	}
	if got := s.MustDo("GET", "n"); got != "20" {
		t.Errorf("20 commands ran %v times", got)
	}
}

func TestAServerThatStartsLateIsFound(t *testing.T) {
	s := redistest.StartOwn(t)
	s.Kill()
	c := open(t, s.URL())
	for range 3 {
		start := time.Now()
		if _, err := c.Do(t.Context(), "a", "PING"); err == nil {
			t.Fatal("nobody answered")
		} else if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v to say %v", took, err)
		}
	}
	s.Restart()
	heals(t, c, time.Second, "a")
	s.Restart()
	heals(t, c, time.Second, "a")
}

// A name that leads from a server that became a replica to the new primary.
func TestAReplicaAtTheAddressIsLeft(t *testing.T) {
	old, fresh := redistest.StartOwn(t), redistest.StartOwn(t)
	proxy := redistest.StartProxy(t, old.Addr)
	c := open(t, "redis://"+proxy.Addr)
	heals(t, c, time.Second, "a")
	proxy.Lead(fresh.Addr)
	old.MustDo("REPLICAOF", fresh.Host, strconv.Itoa(fresh.Port))
	_, err := do(c, "a", "INCR", "a")
	if server := redisstore.ServerError(""); !errors.As(err, &server) || server.Code() != "READONLY" {
		t.Errorf("the replica replied %v", err)
	}
	heals(t, c, time.Second, "a")
}

func TestUsersPasswordsAndDatabases(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "admin's")
	s.Password = "admin's"
	s.MustDo("ACL", "SETUSER", "limits", "on", ">s:e@c/r?et", "~*", "+@all")
	c := open(t, "redis://limits:s%3Ae%40c%2Fr%3Fet@"+s.Addr+"/3")
	heals(t, c, time.Second, "a")
	if got := s.MustDo("INFO", "keyspace").(string); !strings.Contains(got, "db3:keys=1") {
		t.Errorf("not in database 3: %s", got)
	}
	heals(t, open(t, "redis://:admin's@"+s.Addr), time.Second, "a")
	for url, code := range map[string]string{
		"redis://limits:hushhush@" + s.Addr: "WRONGPASS",
		"redis://" + s.Addr:                 "NOAUTH",
	} {
		_, err := do(open(t, url), "a", "GET", "a")
		server := redisstore.ServerError("")
		if !errors.As(err, &server) || server.Code() != code {
			t.Errorf("%v, want %s", err, code)
		} else if strings.Contains(err.Error(), "hushhush") {
			t.Errorf("a password in %v", err)
		}
	}
}

func TestASocketIsAnAddress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	redistest.Start(t, "--unixsocket", path)
	heals(t, open(t, "unix://"+path), time.Second, "a")
}

func TestClosedIsClosed(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, s.URL())
	if _, err := c.Do(t.Context(), "", "PING"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	c.Close()
	if _, err := c.Do(t.Context(), "", "PING"); err == nil {
		t.Error("a closed client sent a command")
	}
}

// rueidis makes a connection in the time of the call that finds it broken, and
// lets all others wait for that.
func TestAConnectionThatIsBeingMadeHoldsUpNobody(t *testing.T) {
	s := redistest.StartOwn(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	proxy := redistest.StartProxy(t, s.Addr)
	c := open(t, "redis://"+proxy.Addr)
	heals(t, c, time.Second, "a")
	proxy.Lead(silent.Addr().String())
	proxy.Cut("break")
	if _, err := do(c, "break", "GET", "break"); err == nil {
		t.Error("the proxy let a reply through")
	}
	patient := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
		defer cancel()
		_, err := c.Do(ctx, "a", "GET", "a")
		patient <- err
	}()
	if _, err := silent.Accept(); err != nil { // it is his to make
		t.Fatal(err)
	}
	for waiting := true; waiting; {
		start := time.Now()
		if _, err := do(c, "a", "GET", "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > deadline+100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		select {
		case <-patient:
			waiting = false
		default:
		}
	}
	proxy.Lead(s.Addr)
	heals(t, c, 2*time.Second, "a")
}

func TestHeldConnectionsDoNotHoldCalls(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it accepts, in the kernel, and says nothing
	c := open(t, "redis://"+l.Addr().String())
	for range 3 {
		start := time.Now()
		if _, err := do(c, "a", "GET", "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > deadline+100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	}
}
