package doctor

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// pings is how many round trips are measured.
const pings = 200

func (e *examination) roundTrip(ctx context.Context) {
	took, err := timed(pings, func() error {
		_, err := e.do(ctx, "PING")
		return err
	})
	if err != nil {
		e.failed("round trip", Fail, err)
		return
	}
	e.duration("round trip", took)
}

// duration says how long something took that requests wait for.
func (e *examination) duration(check string, took []time.Duration) {
	half, late := took[len(took)/2], took[len(took)*99/100]
	const closer = "bring gateway and server closer together, find what loads the server (SLOWLOG GET), or raise timeout"
	level, do := OK, ""
	switch {
	case half > e.Timeout:
		level, do = Fail, closer
	case late > e.Timeout/2:
		level, do = Warn, closer
	}
	e.say(check, level, do, "p50 %s, p99 %s of %d; requests wait %v at most", micros(half.Microseconds()), micros(late.Microseconds()), len(took), e.Timeout)
}

// timed runs f n times, one after another: how long each took, the shortest first.
func timed(n int, f func() error) ([]time.Duration, error) {
	took := make([]time.Duration, n)
	for i := range took {
		began := now()
		if err := f(); err != nil {
			return nil, err
		}
		took[i] = now().Sub(began)
	}
	slices.Sort(took)
	return took, nil
}

// maxDifference is what two clocks may differ by before it is worth a word. What
// is decided hangs on the server's alone.
const maxDifference = time.Second

func (e *examination) clock(ctx context.Context) {
	began := now()
	reply, err := e.do(ctx, "TIME")
	took := now().Sub(began)
	if err != nil {
		e.failed("clock", Fail, err)
		return
	}
	server, ok := timeOf(reply)
	if !ok {
		e.say("clock", Fail, "use Redis 6.2 or Valkey 7.2, or later", "the server's TIME is no time")
		return
	}
	differ := server.Sub(began.Add(took / 2)).Round(time.Millisecond)
	if differ.Abs() > maxDifference {
		e.say("clock", Warn, "set both by NTP", "the server's clock is %v from this machine's: limits go by the server's, logs and the time of day in X-RateLimit-Reset by this one's", differ)
		return
	}
	e.say("clock", OK, "", "the server's is %v from this machine's", differ)
}

// timeOf reads the reply to TIME: seconds and microseconds.
func timeOf(reply any) (t time.Time, ok bool) {
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return t, false
	}
	first, _ := parts[0].(string)
	second, _ := parts[1].(string)
	s, err := strconv.ParseInt(first, 10, 64)
	us, err2 := strconv.ParseInt(second, 10, 64)
	return time.Unix(s, us*1000), err == nil && err2 == nil
}
