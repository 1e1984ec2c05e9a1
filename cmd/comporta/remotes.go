package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/comporta/comporta/identity"
)

// lookEvery is how often the log hears of sources that cannot be asked.
const lookEvery = 5 * time.Second

// A remote is somebody elsewhere who is asked by what clients' credentials are
// verified.
type remote struct {
	of      string
	problem func() error // why it could not be asked last; nil where it could
	told    bool         // that it cannot
}

// remotes are those that a setup asks. Of what is wrong with them by now the log
// has heard.
func (s *setup) remotes() (all []*remote) {
	if c, is := s.ring.(*identity.Cached); is {
		all = append(all, &remote{of: "API keys", problem: func() error { return c.Stats().Problem }})
	}
	if users := s.cfg.User; users != nil && s.cfg.UserFile == "" {
		all = append(all, &remote{of: "keys of tokens", problem: func() error { return users.Stats().Problem }})
	}
	for _, r := range all {
		r.told = r.problem() != nil
	}
	return all
}

// failing are those that could not be asked last.
func (s *setup) failing() (of []string) {
	for _, r := range s.remotes() {
		if r.problem() != nil {
			of = append(of, r.of)
		}
	}
	return of
}

// failedLookups is how many look-ups of API keys have failed since the start.
func (s *setup) failedLookups() uint64 {
	if c, is := s.ring.(*identity.Cached); is {
		return s.failed + c.Stats().Failed
	}
	return s.failed
}

// watch tells the log, until the context ends, when one of them cannot be asked any
// more, and when it can again.
func watch(ctx context.Context, all []*remote, log *slog.Logger) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, r := range all {
			r.look(log)
		}
	}
}

func (r *remote) look(log *slog.Logger) {
	err := r.problem()
	switch is := err != nil; {
	case is == r.told:
		return
	case is:
		log.Warn("a source of credentials cannot be asked: until it can, those that it has not vouched for lately prove nothing, or are refused", "source", r.of, "error", err)
	default:
		log.Info("a source of credentials can be asked again", "source", r.of)
	}
	r.told = err != nil
}
