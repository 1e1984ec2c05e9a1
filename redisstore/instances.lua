-- An instance says that it lives: KEYS[1] is a sorted set of instances by the
-- instant, in µs, until which each is taken to live. ARGV: its name, and for how
-- long it is taken to live, in µs. The reply: how many live, and the server's time.
-- Numbers stay below 2^53, where Lua's are exact.
local time = redis.call('TIME')
local now, alive = time[1] * 1000000 + time[2], tonumber(ARGV[2])
local function digits(n) return string.format('%.0f', n) end
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then
  redis.call('DEL', KEYS[1])
end
-- First of all what takes memory: a server that is full says so only to a script
-- that has written nothing yet.
redis.call('ZADD', KEYS[1], digits(now + alive), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. digits(now))
-- Of a clock that was far ahead, such as that of a primary before this one.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. digits(now + 10 * alive), '+inf')
redis.call('PEXPIRE', KEYS[1], digits(alive / 100))
return {redis.call('ZCARD', KEYS[1]), now}
