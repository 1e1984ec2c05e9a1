package doctor

import (
	"context"
	"strings"
	"sync"
)

// How far the keys are looked through: steps of SCAN with so many keys each, and
// how many of those that match are asked about.
const (
	scanSteps = 200
	scanCount = "1000"
	mostKeys  = 5000
	askers    = 32 // at a time
)

// keys looks for keys under the prefix that the store has not written so.
func (e *examination) keys(ctx context.Context) {
	found, all, err := e.scan(ctx)
	if err != nil {
		e.failed("keys", Warn, err)
		return
	}
	seen := e.count(ctx, found)
	which := plural(seen.states, "key")
	if !all {
		which = "the first " + which
	}
	ok := true
	if seen.lasting > 0 {
		ok = false
		e.say("keys", Warn, "nothing, if clients still use them: the next take gives each an expiry; else remove them", "%s, %d of them without expiry: something other than the store wrote them", which, seen.lasting)
	}
	if seen.foreign > 0 {
		ok = false
		e.say("keys", Warn, "let the other program use another prefix or database, or write store.redis.prefix", "%s under %s: without the form of a state", plural(seen.foreign, "key"), e.Prefix)
	}
	if ok {
		e.say("keys", OK, "", "%s, all with an expiry", which)
	}
}

// scan finds keys under the prefix; all is false where there are more.
func (e *examination) scan(ctx context.Context) (found []string, all bool, err error) {
	cursor := "0"
	for range scanSteps {
		reply, err := e.do(ctx, "SCAN", cursor, "MATCH", escaped(e.Prefix)+":*", "COUNT", scanCount)
		if err != nil {
			return nil, false, err
		}
		page, _ := reply.([]any)
		if len(page) != 2 {
			break
		}
		names, _ := page[1].([]any)
		for _, name := range names {
			if text, ok := name.(string); ok {
				found = append(found, text)
			}
		}
		if cursor, _ = page[0].(string); cursor == "0" {
			return found, true, nil
		}
		if len(found) >= mostKeys {
			break
		}
	}
	return found, false, nil
}

// escaped is a text in which a pattern finds nothing but itself.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(text)
}

// A census counts keys.
type census struct{ states, lasting, foreign int64 }

// count asks about each key, several at a time.
func (e *examination) count(ctx context.Context, keys []string) (all census) {
	todo := make(chan string)
	var mu sync.Mutex
	var group sync.WaitGroup
	for range askers {
		group.Go(func() {
			for key := range todo {
				one := e.look(ctx, key)
				mu.Lock()
				all.states, all.lasting, all.foreign = all.states+one.states, all.lasting+one.lasting, all.foreign+one.foreign
				mu.Unlock()
			}
		})
	}
	for _, key := range keys {
		todo <- key
	}
	close(todo)
	group.Wait()
	return all
}

// look counts one key: a state of a limit, one that never expires, one of
// another program. The store's own others, and one that is gone, count as none.
func (e *examination) look(ctx context.Context, key string) census {
	rest := strings.TrimPrefix(key, e.Prefix+":")
	if strings.HasPrefix(rest, "doctor-") || ownKeys[rest] {
		return census{}
	}
	kind, err := e.do(ctx, "TYPE", key)
	if err != nil || kind == "none" {
		return census{}
	}
	if kind != "string" || !strings.HasPrefix(rest, "{") {
		return census{foreign: 1}
	}
	if left, err := e.do(ctx, "PTTL", key); err == nil && left == int64(-1) {
		return census{states: 1, lasting: 1}
	}
	return census{states: 1}
}

// ownKeys are the store's keys that are no states, without the prefix.
var ownKeys = map[string]bool{"secret": true, "instances": true}
