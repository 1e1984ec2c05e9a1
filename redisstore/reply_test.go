package redisstore

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/storetest"
)

// callOf is a call of one of each kind of request under a rule, packed.
func callOf(t fataler, s *Store, rule *comporta.Rule, kind string) *call {
	c := newCall(s)
	c.reset(comporta.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	take := comporta.Take{Key: comporta.Key{Limit: "a", Identity: "x"}, Rule: rule, Cost: 1}
	r := newRequest(1)
	switch kind {
	case "take":
		r.takes[0] = take
	case "denied":
		r.takes[0], r.denied = take, true
	case "shadow":
		take.Shadow = true
		r.takes[0] = take
	case "takes":
		r = newRequest(2)
		r.takes[0], r.takes[1] = take, take
		r.takes[1].Key.Limit = "b"
	case "settle":
		r.settlement = &comporta.Settlement{Key: take.Key, Rule: rule, Taken: comporta.Receipt{Cost: 2}, Actual: 1}
	}
	if !c.add(r) {
		t.Fatalf("%s is not packed", kind)
	}
	return c
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// TestNoReplyIsTooStrange: whatever a server replies, reading it ends, and does
// not panic.
func TestNoReplyIsTooStrange(t *testing.T) {
	s := &Store{numbers: map[*comporta.Rule]*numbers{}, most: 1000, logger: slog.New(slog.DiscardHandler)}
	number := rapid.OneOf(
		rapid.SampledFrom([]float64{0, 1, 2, -1, 0.5, 1e12, 1 << 53, 1<<53 + 2, -1 << 60, 1 << 62, 1e300, math.Inf(1), math.Inf(-1), math.NaN(), 1.7e15}),
		rapid.Float64(),
	)
	rapid.Check(t, func(t *rapid.T) {
		rule, err := rapid.OneOf(storetest.Limits(), rapid.Custom(extreme).Filter(compiles)).Draw(t, "limit").Compile()
		if err != nil {
			t.Fatal(err)
		}
		kind := rapid.SampledFrom([]string{"take", "denied", "shadow", "takes", "settle"}).Draw(t, "kind")
		c := callOf(t, s, rule, kind)
		var b bytes.Buffer
		put := func() {
			binary.Write(&b, binary.LittleEndian, number.Draw(t, "number"))
		}
		put()
		b.WriteByte(rapid.SampledFrom([]byte{0, 0, 0, 0, 0, 1, 2, 3}).Draw(t, "status"))
		b.Write([]byte{rapid.Byte().Draw(t, "passed"), 0})
		for range len(c.seats) {
			b.WriteByte(rapid.SampledFrom([]byte{0, 1, 1, 1, 3, 5, 255}).Draw(t, "flags"))
			n := map[uint8]int{token: 3, leaky: 4, fixed: 3, counter: 3, slidingLog: 7, allowAll: 1, denyAll: 1}[c.seats[0].numbers.algorithm]
			for range n {
				put()
			}
		}
		reply := b.String()
		reply = reply[:len(reply)-rapid.SampledFrom([]int{0, 0, 0, 0, 1, 5, 20}).Draw(t, "cut")]
		done := make(chan any)
		go func() {
			defer func() { done <- recover() }()
			c.read(reply)
		}()
		select {
		case p := <-done:
			if p != nil {
				t.Fatalf("%v under %+v: %x: %v", kind, rule.Limit(), reply, p)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%v under %+v: %x: does not end", kind, rule.Limit(), reply)
		}
	})
}

// TestStrangeTimesAreNone: whatever time a server tells, a quota's windows are
// found, and packed.
func TestStrangeTimesAreNone(t *testing.T) {
	rule := compile(t, "1/s", func(l *comporta.Limit) {
		*l = comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 1, Calendar: &comporta.Calendar{Period: comporta.Day}}
	})
	n := newNumbers(rule, 1)
	for _, told := range []int64{math.MinInt64, -1, 0, 1 << 53, math.MaxInt64 - 1, math.MaxInt64} {
		s := &Store{}
		s.heard(told, 0, 0)
		w := n.around(s.about(1000))
		if w[0] >= w[1] || w[1] >= w[2] {
			t.Errorf("told %d: windows of %v", told, w)
		}
	}
}
