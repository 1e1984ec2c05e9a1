package redisstore

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
)

// A script is Lua that servers keep under its digest.
type script struct{ source, digest string }

func newScript(source string) script {
	sum := sha1.Sum([]byte(source))
	return script{source, hex.EncodeToString(sum[:])}
}

// The step for all calls is one script in parts, each of which uses those before
// it; that for the commonest calls stands by itself.
var (
	//go:embed step/arrive.lua
	arriveSource string
	//go:embed step/take.lua
	takeSource string
	//go:embed step/log.lua
	logSource string
	//go:embed step/lease.lua
	leaseSource string
	//go:embed step/items.lua
	itemsSource string
	//go:embed step/token.lua
	tokenSource string

	step      = newScript(arriveSource + takeSource + logSource + leaseSource + itemsSource)
	tokenStep = newScript(tokenSource)
)

// command is the call of the script, but for what follows the number of keys.
func (s script) command(verb string, keys []string, more int) []string {
	args := make([]string, 0, 3+len(keys)+more)
	what := s.digest
	if verb == "EVAL" {
		what = s.source
	}
	args = append(args, verb, what, itoa(len(keys)))
	return append(args, keys...)
}

// run runs the script on keys of one slot. Only a server that says that it does
// not know the script is asked a second time: then nothing was carried out.
func (s script) run(ctx context.Context, c Client, keys []string, args ...string) (any, error) {
	reply, err := c.Do(ctx, keys[0], append(s.command("EVALSHA", keys, len(args)), args...)...)
	var said ServerError
	if errors.As(err, &said) && said.Code() == "NOSCRIPT" {
		reply, err = c.Do(ctx, keys[0], append(s.command("EVAL", keys, len(args)), args...)...)
	}
	return reply, err
}
