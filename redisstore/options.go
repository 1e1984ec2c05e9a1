package redisstore

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Options say how a store keeps states. The zero Options are ready.
type Options struct {
	// Prefix begins every key; "comporta" unless said. Stores of one prefix are one.
	// It has no braces.
	Prefix string
	// Timeout is the deadline of every call, with the wait in line; 50 ms unless said.
	Timeout time.Duration
	// Logger is told when the store goes down and comes back, and of what was found
	// wrong in it; slog.Default unless said.
	Logger *slog.Logger
	// MaxKnown is of how many keys the last answer is remembered, to deny again
	// without asking and to begin local counting; 65,536 unless said, of 128 bytes each.
	MaxKnown int
	// MaxLogEntries is how many entries one sliding log may have, of 16 bytes each;
	// 1,000,000 unless said, up to 16,777,216. Beyond it the last entry moves on: units then stay longer
	// than they must, and never shorter.
	MaxLogEntries int
	// Batch is how many requests may share one call, up to 1,024; 128 unless said.
	Batch int
	// Failures in a row open the breaker: 5 unless said. While it is open all calls
	// fail at once, and every Probe, 200 ms unless said, the server is tried.
	Failures int
	Probe    time.Duration
	// Heartbeat is how often an instance says that it lives; 1 s unless said.
	Heartbeat time.Duration
	// Now is for tests: the instant goes with each call instead of the server's own,
	// and keys expire an hour of real time later.
	Now func() time.Time
}

// mostEntries is a quarter of a GiB in one log: a write that a server refuses for
// its length would come after others of the same call.
const mostEntries = 1 << 24

func (o *Options) check() error {
	if strings.ContainsAny(o.Prefix, "{}") {
		return errors.New("redisstore: a prefix may not have braces: they say which part of a key makes its slot in a cluster")
	}
	for _, d := range []time.Duration{o.Timeout, o.Probe, o.Heartbeat} {
		if d < 0 {
			return fmt.Errorf("redisstore: a timeout, probe or heartbeat of %v: at least 0, which is the default", d)
		}
	}
	if o.MaxKnown < 0 || o.MaxLogEntries < 0 || o.Batch < 0 || o.Batch > mostKeys || o.Failures < 0 {
		return fmt.Errorf("redisstore: a number of the options is out of range: each is at least 0, which is the default, and batch at most %d", mostKeys)
	}
	if o.MaxLogEntries > mostEntries {
		return fmt.Errorf("redisstore: sliding logs of %d entries: at most %d, as no value of a server is longer than 512 MiB", o.MaxLogEntries, mostEntries)
	}
	return nil
}

// either is what was said, or else the default.
func either[T comparable](said, otherwise T) T {
	var zero T
	if said == zero {
		return otherwise
	}
	return said
}
