package main

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// gcra is the script that one writes in an hour: a token bucket as GCRA, one key a
// call, in whole microseconds, on the server's clock. ARGV: the microseconds of a
// unit, and those of a full bucket.
//
// Numbers are written by string.format, as Lua's own way keeps 14 digits only.
var gcra = rueidis.NewLuaScript(`
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
local every, full = tonumber(ARGV[1]), tonumber(ARGV[2])
local tat = tonumber(redis.call('GET', KEYS[1])) or now
if tat < now then
  tat = now
end
local new = tat + every
if new - now > full then
  return {0, 0, new - now - full, tat - now}
end
redis.call('SET', KEYS[1], string.format('%.0f', new), 'PX', string.format('%.0f', math.ceil((new - now) / 1000)))
return {1, math.floor((full - (new - now)) / every), 0, new - now}
`)

func openScript(address string, database int, a allowance) (*limiter, error) {
	client, err := rueidis.NewClient(rueidisOption(address, database))
	if err != nil {
		return nil, err
	}
	every := strconv.FormatInt(int64(a.every()/time.Microsecond), 10)
	full := strconv.FormatInt(int64(a.every()/time.Microsecond)*int64(a.units), 10)
	return &limiter{
		take: func(ctx context.Context, key string) (bool, error) {
			r, err := gcra.Exec(ctx, client, []string{"gcra:" + key}, []string{every, full}).AsIntSlice()
			if err != nil {
				return false, err
			}
			return r[0] == 1, nil
		},
		close: client.Close,
	}, nil
}
