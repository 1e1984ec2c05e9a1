package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
)

func compile(t *testing.T, limit comporta.Limit) *comporta.Rule {
	t.Helper()
	rule, err := limit.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// each are limits of all algorithms, 5 per 10 s or per day.
func each() []comporta.Limit {
	limits := []comporta.Limit{{Algorithm: comporta.FixedWindow, Limit: 5, Calendar: &comporta.Calendar{Period: comporta.Day}}}
	for _, algorithm := range comporta.Algorithms() {
		limits = append(limits, comporta.Limit{Algorithm: algorithm, Limit: 5, Window: 10 * time.Second})
	}
	return limits
}

func name(l comporta.Limit) string {
	return strings.ReplaceAll(fmt.Sprint(l.Algorithm, " ", l), "/", " per ")
}

func do(t *testing.T, server *redistest.Server, args ...string) any {
	t.Helper()
	reply, err := server.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args[0], err)
	}
	return reply
}

func ttl(t *testing.T, server *redistest.Server, key string) int64 {
	t.Helper()
	return do(t, server, "PTTL", key).(int64)
}

func take(t *testing.T, s *redisstore.Store, rule *comporta.Rule, cost int64) comporta.Decision {
	t.Helper()
	d, err := s.TakeOne(t.Context(), comporta.Key{Limit: "requests", Identity: "203.0.113.7"}, rule, cost)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const stored = "comporta:{11:203.0.113.7}8:requests"

// TestEveryKeyExpires after its state is full again, and at most a second later.
func TestEveryKeyExpires(t *testing.T) {
	server := redistest.Start(t)
	s := openOn(t, server, redisstore.Options{})
	for _, limit := range each() {
		t.Run(name(limit), func(t *testing.T) {
			do(t, server, "DEL", stored)
			rule := compile(t, limit)
			for _, cost := range []int64{1, 3, 1, 1} { // the last is denied
				d := take(t, s, rule, cost)
				got, full := ttl(t, server, stored), d.FullAfter.Milliseconds()
				// The answer is older than the look at the key.
				if got < full-500 || got > full+1001 {
					t.Errorf("full in %d ms, the key goes in %d ms", full, got)
				}
			}
		})
	}
}

// TestForeignValuesHeal: whatever a key holds that is no state, it is replaced,
// and no key is left without an expiry, by a denial neither.
func TestForeignValuesHeal(t *testing.T) {
	server := redistest.Start(t)
	s := openOn(t, server, redisstore.Options{})
	foreign := map[string][]string{
		"a number":     {"SET", stored, "99999"},
		"nothing":      {"SET", stored, ""},
		"36 bytes":     {"SET", stored, strings.Repeat("x", 36)},
		"zeros":        {"SET", stored, strings.Repeat("\x00", 43)},
		"a log's tag":  {"SET", stored, "\x05" + strings.Repeat("\x01", 60)},
		"a list":       {"RPUSH", stored, "a", "b"},
		"a hash":       {"HSET", stored, "a", "b"},
		"a sorted set": {"ZADD", stored, "1", "a"},
		"a stream":     {"XADD", stored, "*", "a", "b"},
	}
	for _, limit := range each() {
		rule := compile(t, limit)
		for what, command := range foreign {
			t.Run(name(limit)+"/"+what, func(t *testing.T) {
				do(t, server, "DEL", stored)
				do(t, server, command...)
				if d := take(t, s, rule, 1); !d.Allowed || d.Remaining != 4 {
					t.Errorf("got %+v, want that of a new key", d)
				}
				if got := ttl(t, server, stored); got <= 0 {
					t.Errorf("the key's time to live is %d", got)
				}
			})
			t.Run(name(limit)+"/"+what+"/peek", func(t *testing.T) {
				do(t, server, "DEL", stored)
				do(t, server, command...)
				if d := take(t, s, rule, 0); d.Remaining != 5 {
					t.Errorf("got %+v, want that of a new key", d)
				}
				if got := ttl(t, server, stored); got != -2 {
					t.Errorf("the key's time to live is %d, want no key", got)
				}
			})
		}
		t.Run(name(limit)+"/without expiry", func(t *testing.T) {
			for what, cost := range map[string]int64{"taken": 1, "denied": 6, "looked at": 0} {
				do(t, server, "DEL", stored)
				take(t, s, rule, 3)
				do(t, server, "PERSIST", stored)
				d := take(t, s, rule, cost)
				if d.Allowed != (cost < 6) {
					t.Errorf("%s: got %+v", what, d)
				}
				if got := ttl(t, server, stored); got <= 0 {
					t.Errorf("%s: the key's time to live is %d", what, got)
				}
			}
		})
	}
}

// TestDenialsAndPeeksWriteNothing: the server counts no change.
func TestDenialsAndPeeksWriteNothing(t *testing.T) {
	server := redistest.Start(t)
	s := openOn(t, server, redisstore.Options{Heartbeat: time.Hour})
	changes := func() int {
		for line := range strings.SplitSeq(do(t, server, "INFO", "persistence").(string), "\r\n") {
			if n, ok := strings.CutPrefix(line, "rdb_changes_since_last_save:"); ok {
				changes, _ := strconv.Atoi(n)
				return changes
			}
		}
		t.Fatal("the server does not count changes")
		return 0
	}
	for _, limit := range each() {
		do(t, server, "DEL", stored)
		rule := compile(t, limit)
		take(t, s, rule, 4)
		before := changes()
		for range 3 {
			if d := take(t, s, rule, 2+comporta.MaxUnits); d.Allowed {
				t.Fatalf("%s: got %+v", name(limit), d)
			}
			take(t, s, rule, 0)
		}
		if after := changes(); after != before {
			t.Errorf("%s: denials and peeks made %d changes", name(limit), after-before)
		}
	}
}

// TestAForgottenScriptIsSentAgain, and what it did is done once.
func TestAForgottenScriptIsSentAgain(t *testing.T) {
	server := redistest.Start(t)
	s := openOn(t, server, redisstore.Options{})
	rule := compile(t, comporta.Limit{Limit: 5, Window: time.Hour})
	for want := int64(4); want >= 0; want-- {
		do(t, server, "SCRIPT", "FLUSH")
		if d := take(t, s, rule, 1); d.Remaining != want {
			t.Errorf("%d remain, want %d", d.Remaining, want)
		}
	}
}

// TestIdentitiesShareASlot with all their limits, whatever they are made of: the
// one that a cluster says.
func TestIdentitiesShareASlot(t *testing.T) {
	server := redistest.Start(t, "--cluster-enabled", "yes")
	s := openOn(t, server, redisstore.Options{})
	seen := map[string]bool{}
	for _, identity := range []string{"", "a", "{a}", "}", "a}b{c", "1:a", "\x00\xff", strings.Repeat("long", 99)} {
		for _, limit := range []string{"a", "}{", "1:a", ""} {
			key := s.KeyOf(comporta.Key{Limit: limit, Identity: identity})
			if seen[key] {
				t.Errorf("two keys are named %q", key)
			}
			seen[key] = true
			if got, want := do(t, server, "CLUSTER", "KEYSLOT", key).(int64), redisstore.SlotOf(identity); got != int64(want) {
				t.Errorf("%q is in slot %d, not in %d", key, got, want)
			}
		}
	}
}

// TestALogIsBounded: beyond its most entries the last moves on, and never is
// more allowed than the limit says.
func TestALogIsBounded(t *testing.T) {
	server := redistest.Start(t)
	clock := time.UnixMicro(1_000_000)
	s := openOn(t, server, redisstore.Options{MaxLogEntries: 100, Now: func() time.Time { return clock }})
	rule := compile(t, comporta.Limit{Algorithm: comporta.SlidingLog, Limit: 500, Window: time.Second})
	passed := 0
	for range 1000 { // within one window
		if take(t, s, rule, 1).Allowed {
			passed++
		}
		clock = clock.Add(999 * time.Microsecond)
	}
	if passed != 500 {
		t.Errorf("%d passed, want 500", passed)
	}
	if got := do(t, server, "STRLEN", stored).(int64); got > 48+100*16 {
		t.Errorf("the log has %d bytes", got)
	}
}
