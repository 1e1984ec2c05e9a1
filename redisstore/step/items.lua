-- The items, in order.
for _ = 1, itemsN do
  local op, n, m
  op, n, m, pos = get('<BHB', A, pos)
  if op == 2 then
    local k, ri, owed, x, y, at, offset
    k, ri, owed, x, y, at, offset, pos = get('<HHBdddd', A, pos)
    local r = rules[ri]
    local c = visit(k, r, offset)
    outN = outN + 1
    if c.bad or settle(c, r, owed, x, y, at) then
      out[outN] = put('<Bd', 1, c.e)
    else
      out[outN] = put('<BH', 0, 0) .. (c.a == LOG and logs.tell(c, r, 0, 0) or state(c))
    end
  elseif m == 1 then
    local k, ri, flags, x, y
    k, ri, flags, x, y, pos = get('<HHBdd', A, pos)
    local r = rules[ri]
    local c = visit(k, r, y)
    outN = outN + 1
    if c.bad then
      out[outN] = put('<Bd', 1, c.e)
    else
      local attempts, passed, found = flags % 2 == 1, 0, nil
      if c.a == LOG then
        local fit = fits(c, r, x, y)
        local way = fit and 1 or attempts and x <= r.L and 3 or 2
        if x == 0 or fit and op == 1 and not attempts then way = 0 end
        found = logs.tell(c, r, x, way)
      else
        found = state(c)
      end
      for _ = 1, n do
        if fits(c, r, x, y) then
          passed = passed + 1
          if op == 0 or attempts then spend(c, r, x, y) end
        elseif attempts then
          hammer(c, r, x, y)
        else
          break
        end
      end
      out[outN] = put('<BH', 0, passed) .. found
    end
  elseif m == 0 then
    local k, ri, book, offset, q, who, wish, held, wanted, most, percent, ttl
    k, ri, book, offset, q, who, wish, held, wanted, most, percent, ttl, pos = get('<HHHddddddddd', A, pos)
    local r = rules[ri]
    local c = cells[k] or arrive(k, r, offset)
    local granted = lease(c, r, book, q, who, wish, held, wanted, most, percent, ttl)
    local found = c.a == LOG and logs.tell(c, r, granted, granted > 0 and 1 or 0) or state(c)
    if granted > 0 then
      if c.a == TOKEN then
        local f, p = rarely().muldiv(granted, q, r.p)
        spend(c, r, f, p)
      else
        spend(c, r, granted, 0)
      end
    end
    outN = outN + 1
    out[outN] = put('<BH', 0, 0) .. found .. put('<d', granted)
  else
    local takes, all, bad = {}, op == 0, nil
    for i = 1, m do
      local k, ri, flags, x, y
      k, ri, flags, x, y, pos = get('<HHBdd', A, pos)
      local r = rules[ri]
      local c = visit(k, r, y)
      bad = bad or c.bad and c
      local fit = not bad and fits(c, r, x, y)
      all = all and (fit or flags >= SHADOW)
      takes[i] = {c, r, flags % 2 == 1, x, y, fit}
    end
    outN = outN + 1
    if bad then
      out[outN] = put('<Bd', 1, bad.e)
    else
      out[outN] = put('<BH', 0, all and 1 or 0)
      for i = 1, m do
        local c, r, attempts, x, y, fit = unpack(takes[i])
        local way = 0
        if fit then
          if (all or attempts) and x ~= 0 then way = 1 end
        else
          way = attempts and (c.a > LOG or x <= r.L) and 3 or 2
        end
        outN = outN + 1
        if c.a == LOG then out[outN] = logs.tell(c, r, x, way) else out[outN] = state(c) end
        if fit then
          if all or attempts then spend(c, r, x, y) end
        elseif attempts then
          hammer(c, r, x, y)
        end
      end
    end
  end
end

-- What changed is written; what is full again goes. The first write that fails
-- fails before anything is written: then nothing was spent.
local failed
local function write(...)
  local reply = call(...)
  if type(reply) == 'table' and reply.err then failed = failed or reply.err end
end

-- seconds is an expiry in whole ones, up to a second later.
local texts = {}
local function seconds(us)
  local s = given and 3600 + redis.call('TIME')[1] or floor(us / 1000000) + 1
  local text = texts[s]
  if not text then
    text = string.format('%.0f', s)
    texts[s] = text
  end
  return text
end

-- expiry is when a key may go: when its state is full again.
local function expiry(c)
  local us
  if c.a <= LEAKY then
    us = c.e + c.f + 1
  elseif c.a == FIXED then
    us = c.t
  elseif c.a == COUNTER then
    us = c.t + c.r.W
  else
    us = c.newest + c.r.W
  end
  return seconds(us)
end

for i = 1, cellsN do
  local c = order[i]
  local key, r = KEYS[c.k], c.r
  if c.bad then
    -- nothing was decided
  elseif c.d and c.on then
    local a = c.a
    if a == TOKEN then
      write('SET', key, put(forms[a], a, c.e, r.L, r.W, r.B, c.f, c.p), 'EXAT', expiry(c))
    elseif a == LEAKY then
      write('SET', key, put(forms[a], a, c.e, r.L, r.W, r.B, c.f, c.p, c.l), 'EXAT', expiry(c))
    elseif a == FIXED then
      write('SET', key, put(forms[a], a, c.e, r.L, r.W, r.flags, c.n, c.t), 'EXAT', expiry(c))
    elseif a == COUNTER then
      write('SET', key, put(forms[a], a, c.e, r.L, r.W, r.flags, c.n, c.v, c.t), 'EXAT', expiry(c))
    else
      logs.save(c, r, expiry(c), write)
    end
  elseif c.h and not c.on then
    write('DEL', key)
  elseif c.h and call('PTTL', key) == -1 then
    write('EXPIREAT', key, expiry(c))
  end
end
for k, ledger in pairs(ledgers) do
  write('SET', KEYS[k], ledger.v, 'EXAT', seconds(ledger.last))
end
if failed then return redis.error_reply(failed) end
return put('<d', now) .. table.concat(out, '', 1, outN)
