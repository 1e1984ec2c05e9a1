package admin

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta/policy"
)

// A Herald tells the log of overrides that begin and end, the policy's and those
// of run time, each once.
type Herald struct {
	engine func() *policy.Engine
	log    *slog.Logger
	wake   chan struct{}               // has room for one
	hold   map[string]*policy.Override // as far as was told, by what they say
}

// NewHerald tells of the overrides of an engine, which may be another one each
// time it is asked for.
func NewHerald(engine func() *policy.Engine, log *slog.Logger) *Herald {
	return &Herald{engine: engine, log: log, wake: make(chan struct{}, 1), hold: make(map[string]*policy.Override)}
}

// Changed says that overrides may have changed. It does not wait.
func (h *Herald) Changed() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// lookAgain is when overrides are looked at though none should end: clocks are set.
const lookAgain = time.Minute

// Run tells of them until the context ends.
func (h *Herald) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-h.wake:
		}
		timer.Reset(min(lookAgain, h.look(now())))
	}
}

// look tells what has changed, and is when the next override ends.
func (h *Herald) look(at time.Time) time.Duration {
	next := lookAgain
	holding := make(map[string]*policy.Override)
	e := h.engine()
	for _, o := range slices.Concat(e.Policy().Overrides, e.Overrides()) {
		if o.Ended(at) {
			continue
		}
		if !o.Until.IsZero() {
			next = min(next, o.Until.Sub(at))
		}
		holding[said(o)] = o
	}
	for _, text := range slices.Sorted(maps.Keys(h.hold)) {
		o := h.hold[text]
		if holding[text] != nil {
			continue
		}
		why := "it was removed"
		if o.Ended(at) {
			why = "its last day is over"
		}
		h.log.Info("an override has ended", append(attrs(o), "why", why)...)
	}
	for _, text := range slices.Sorted(maps.Keys(holding)) {
		if h.hold[text] == nil {
			h.log.Info("an override begins", attrs(holding[text])...)
		}
	}
	h.hold = holding
	return next
}

// said is all that an override says, for telling it from others.
func said(o *policy.Override) string {
	return fmt.Sprintf("%q %q %q %d", whose(o), numbers(o), o.Reason, o.Until.UnixNano())
}

func attrs(o *policy.Override) []any {
	until := "for good"
	if !o.Until.IsZero() {
		until = o.Until.Format(time.RFC3339)
	}
	return []any{"who", whose(o), "limits", numbers(o), "until", until, "reason", o.Reason}
}

// whose is what operators call an override's client.
func whose(o *policy.Override) string {
	switch {
	case o.Who.Network.IsValid():
		return "address:" + o.Who.Network.String()
	case o.Who.Who.Name != "":
		return o.Who.Who.Name
	}
	return o.Who.Who.ID
}

// numbers are an override's limits in one line.
func numbers(o *policy.Override) string {
	texts := make(map[string]string)
	for name, l := range o.Limits {
		texts[name] = l.String()
	}
	return inOneLine(texts)
}

// inOneLine are numbers by their limits' names, as logs tell them.
func inOneLine(limits map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		all = append(all, name+": "+limits[name])
	}
	return strings.Join(all, ", ")
}
