-- The step of the other parts for the commonest call: takes of one token bucket that
-- charges what is admitted, each item on a key of its own. The bargain is the
-- same; what is unusual (another form or other numbers in a key, a clock at
-- fault) is left as it is and answered by 2: ask them.
local get, put, call, format = struct.unpack, struct.pack, redis.pcall, string.format
local A = ARGV[1]
local now, _, items, _, _, L, W, B, p, cf, cp, m, pos = get('<dHHBBddddddd', A)
local given = now >= 0
if not given then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local out, texts, failed = {}, {}, nil
local most = math.max(2 * cf + 1, cf + 34560000000000) -- or it is no state
for i = 1, items do
  local n, x, y
  _, n, _, _, _, _, x, y, pos = get('<BHBHHBdd', A, pos)
  local key = KEYS[i]
  local v = call('GET', key)
  local f, q, e, on, odd = 0, 0, now, 0, false
  if v then
    if #v == 36 then
      local a, at, l, w, b, F, Q = get('<BI7I5I6I5I7I5', v)
      if a ~= 1 or l ~= L or w ~= W or b ~= B or at - now > 10000000 or F > most or Q >= p then
        odd = true
      else
        if at > now then e = at end
        F = F - (e - at)
        if F > 0 or F == 0 and Q > 0 then f, q, on = F, Q, 1 end
      end
    else
      odd = true
    end
  end
  if odd then
    out[i] = '\2'
  else
    local passed, F, Q = 0, f, q
    if x == 0 and y == 0 then
      passed = n
    elseif x >= 0 then
      for _ = 1, n do
        local over, ticks = F - cf + x, Q - cp + y
        if ticks < 0 then
          ticks, over = ticks + p, over - 1
        elseif ticks >= p then
          ticks, over = ticks - p, over + 1
        end
        if ticks > 0 then over = over + 1 end
        if over > m then break end
        passed, F, Q = passed + 1, F + x, Q + y
        if Q >= p then Q, F = Q - p, F + 1 end
      end
    end
    out[i] = put('<BHBddd', 0, passed, on, e, f, q)
    local reply
    if F > f or Q ~= q or on == 0 then
      if F > 0 or Q > 0 then
        local s = given and 3600 + redis.call('TIME')[1] or (e + F) / 1000000 + 1
        s = s - s % 1
        local text = texts[s]
        if not text then
          text = format('%.0f', s)
          texts[s] = text
        end
        reply = call('SET', key, put('<BI7I5I6I5I7I5', 1, e, L, W, B, F, Q), 'EXAT', text)
      elseif v then
        reply = call('DEL', key)
      end
    elseif call('PTTL', key) == -1 then
      reply = call('EXPIREAT', key, format('%.0f', (e + F) / 1000000 + 2))
    end
    if type(reply) == 'table' and reply.err then failed = reply.err end
  end
end
if failed then return redis.error_reply(failed) end
return put('<d', now) .. table.concat(out)
