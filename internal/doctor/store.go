package doctor

import (
	"context"
	"log/slog"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/redisstore"
)

// slowScript is more than a decision takes in any server that is well: some ten microseconds.
const slowScript = 100 * time.Microsecond

// store takes from a limit of its own, as a gateway does, and says how long that
// takes, in all and in the server. The key expires within two seconds.
func (e *examination) store(ctx context.Context) {
	store, err := redisstore.New(e.Client, redisstore.Options{Prefix: e.ownPrefix(), Timeout: patience, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		e.say("decision", Fail, "", "%v", err)
		return
	}
	defer store.Close()
	rule, err := comporta.Limit{Limit: comporta.MaxUnits, Window: time.Second}.Compile()
	if err != nil {
		e.say("decision", Fail, "", "%v", err)
		return
	}
	before, beforeUS := e.scripts(ctx)
	took, err := timed(pings, func() error {
		_, err := store.TakeOne(ctx, comporta.Key{Limit: "doctor", Identity: "doctor"}, rule, 1)
		return err
	})
	if err != nil {
		e.failed("decision", Fail, err)
		return
	}
	e.duration("decision", took)
	if calls, us := e.scripts(ctx); calls > before {
		each := (us - beforeUS) / (calls - before)
		level, do := OK, ""
		if time.Duration(each)*time.Microsecond > slowScript {
			level, do = Warn, "find what else the server's processor does; other programs' scripts count here too"
		}
		e.say("script", level, do, "%d µs in the server for each call", each)
	}
}

// scripts are how often all servers ran scripts, and the microseconds in all.
func (e *examination) scripts(ctx context.Context) (calls, us int64) {
	for _, server := range e.servers {
		text, _ := ask(ctx, server, "INFO", "commandstats")
		said, _ := text.(string)
		n, took := parseInfo(said).calls("evalsha")
		calls, us = calls+n, us+took
	}
	return calls, us
}
