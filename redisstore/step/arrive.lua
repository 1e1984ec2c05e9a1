-- The step, in the server: what the Go step does to states, this does, to the
-- microsecond; what it answers is what it found, and Go works out the decisions
-- by the same Go step. So only the changes of states are here, not the words of
-- an answer.
--
-- All numbers are whole and below 2^53, where a double is exact. What could pass
-- that comes prepared from Go (units as time) or goes through muldiv. A time in
-- a bucket is f microseconds and p ticks, of which the rule says how many make one.
--
-- ARGV[1] holds, packed: the instant (or -1: the server's own), the rules, and
-- the items: each the takes of one request, n times over, one settlement, or one
-- wish for a lease. Each key is read once, stepped as often as it is asked, and
-- written once if changed.
local get, put, fmod, floor = struct.unpack, struct.pack, math.fmod, math.floor
local call = redis.pcall
local A = ARGV[1]
local now, rulesN, itemsN, pos = get('<dHH', A)
local given = now >= 0
if not given then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end

local TOKEN, LEAKY, FIXED, COUNTER, LOG, ALL = 1, 2, 3, 4, 5, 6 -- and 7, none
local ATTEMPTS, SHADOW = 1, 2 -- a take's flags
local FAULT, REPLACED = 2, 4  -- a reply's flags; 1: there is a state
local STEP = 10000000         -- a clock that steps back by more is at fault

local rules, cells, order, cellsN, out, outN = {}, {}, {}, 0, {}, 0

for i = 1, rulesN do
  local a, flags, L, W
  a, flags, L, W, pos = get('<BBdd', A, pos)
  local r = {a = a, flags = flags, L = L, W = W}
  if a <= LEAKY then
    r.B, r.p, r.cf, r.cp, r.m, pos = get('<ddddd', A, pos)
  elseif a <= FIXED then
    r.b0, r.b1, r.b2, pos = get('<ddd', A, pos)
  elseif a == LOG then
    r.most, pos = get('<d', A, pos)
  end
  rules[i] = r
end

-- rare is what few calls need; made on first use, for making functions costs time.
local rare
local function rarely()
  if rare then return rare end
  rare = {}

  local function gcd(a, b)
    while b > 0 do a, b = b, fmod(a, b) end
    return a
  end

  -- a·b / c rounded down, and the rest; c below 2^46, the quotient below 2^53.
  function rare.muldiv(a, b, c)
    local product = a * b
    if product < 9007199254740992 then
      local rest = fmod(product, c)
      return (product - rest) / c, rest
    end
    local br = fmod(b, c)
    local bq, q, r, place = (b - br) / c, 0, 0, 4503599627370496 -- 16^13
    while place >= 1 do
      local digit = floor(a / place)
      a = a - digit * place
      r = r * 16 + digit * br
      local rest = fmod(r, c)
      q = q * 16 + digit * bq + (r - rest) / c
      r = rest
      place = place / 16
    end
    return q, r
  end

  -- a bucket's level under the numbers L, W as units, rounded up, and those as
  -- the new rule's time
  function rare.convert(c, r, L, W)
    local g = gcd(L, W)
    local q = W / g
    local units, rest = rare.muldiv(c.f, L / g, q)
    rest = rest + c.p
    local over = fmod(rest, q)
    units = units + (rest - over) / q
    if over > 0 then units = units + 1 end
    if units > r.B then units = r.B end
    c.f, c.p = rare.muldiv(units, r.W / (r.L / r.p), r.p)
  end
  return rare
end

-- A cell is a key's state on the bench: f, p and l (the last place) are a
-- bucket's; n, v (the previous window's), u (its share) and t (the window's end)
-- the windows'. on: there is one; h: there is a value in the server; d: it is to
-- be written; e: the instant that counts; g: the reply's flags.
local function forget(c)
  c.on, c.f, c.p, c.n, c.v, c.u = false, 0, 0, 0, 0, 0
end

-- share is what of the previous window's count v still counts, left microseconds
-- before the window's end, rounded up.
local function share(v, left, W)
  if v == 0 then return 0 end
  local product = v * left
  local rest
  if product < 9007199254740992 then
    rest = fmod(product, W)
    product = (product - rest) / W
  else
    product, rest = rarely().muldiv(v, left, W)
  end
  if rest > 0 then return product + 1 end
  return product
end

-- the end of the window that e lies in; ends of windows are end plus or less W·n
local function ending(e, W, last)
  local m = fmod(last - e, W)
  if m <= 0 then m = m + W end
  return e + m
end

-- finish sets a fixed window's end; a quota's comes from Go, which knows calendars.
local function finish(c, r, offset)
  if r.flags < 2 then
    c.t = ending(c.e, r.W, r.W - offset)
  elseif c.e >= r.b0 and c.e < r.b1 then
    c.t = r.b1
  elseif c.e >= r.b1 and c.e < r.b2 then
    c.t = r.b2
  else
    c.bad = true
  end
end

-- The forms of a state, by algorithm; a log's is longer. The instant comes first.
local forms = {'<BI7I5I6I5I7I5', '<BI7I5I6I5I7I5I7', '<BI7I5I6BI6I7', '<BI7I5I6BI6I6I7'}
local sizes = {36, 43, 33, 39}
local HEAD = 48 -- a log's: algorithm, L, W, instant, base, total, head, count, newest
local HEADER = '<BI7I5I6I7I7I4I4I7'

-- known says whether a value is a state of some algorithm.
local function known(v)
  local a = v:byte()
  return a and (sizes[a] == #v or a == LOG and #v >= HEAD)
end

-- What has the form of a state may still be none: MOST microseconds are the
-- longest that a max_wait, now or before, and a quota's window may last.
local MOST = 34560000000000
local function forged(c)
  c.g = REPLACED
  return c
end

-- other is for a state of another algorithm: the key starts anew, but never
-- before that one's last change.
local function other(c, v)
  local at = get('<I7', v, 2)
  if at - now > STEP then
    c.g = FAULT
  elseif at > now then
    c.e = at
  end
end

local logs -- the sliding log's functions; made on first use
local makeLogs

-- arrive is the cell of key k, brought to the instant of the call and to the rule
-- r. It forgets what is full and converts what was made under other numbers.
local function arrive(k, r, offset)
  local a = r.a
  local c = {k = k, r = r, a = a, e = now, g = 0, on = false, f = 0, p = 0, n = 0, v = 0, u = 0}
  cells[k] = c
  cellsN = cellsN + 1
  order[cellsN] = c
  if a == LOG then
    logs = logs or makeLogs()
    return logs.arrive(c, r)
  elseif a > LOG then
    c.h = true -- or may be
    return c
  end
  local v = call('GET', KEYS[k])
  if v then
    c.h = true
    if type(v) ~= 'string' or not known(v) then
      c.g, v = REPLACED, nil
    elseif v:byte() ~= a then
      other(c, v)
      v = nil
    end
  end
  if not v then
    if a == FIXED then
      finish(c, r, offset)
    elseif a == COUNTER then
      c.t = ending(c.e, r.W, r.W - offset)
    end
    return c
  end

  if a <= LEAKY then
    local _, at, L, W, B, f, p, l = get(forms[a], v)
    local same = L == r.L and W == r.W and B == r.B
    if same then
      if p >= r.p or f > 2 * r.cf + 1 and (a == LEAKY or f > r.cf + MOST) then return forged(c) end
    elseif L < 1 or W < 1000 then
      return forged(c)
    end
    if a == LEAKY and l > 9007199254000000 then return forged(c) end
    if at > now then
      if at - now > STEP then
        at, c.g, c.d = now, FAULT, true
      else
        c.e = at
      end
    end
    f = f - (c.e - at)
    if f < 0 or f == 0 and p == 0 then return c end
    c.on, c.f, c.p, c.l = true, f, p, l
    if a == TOKEN then c.l = nil end
    if not same then
      rarely().convert(c, r, L, W)
      c.d = true
    end
  elseif a == FIXED then
    local _, at, L, W, flags, n, t = get(forms[a], v)
    local fault = at - now > STEP
    local same = L == r.L and W == r.W and flags == r.flags
    if same and t - at > (flags < 2 and W or MOST) then
      finish(c, r, offset)
      return forged(c)
    end
    if fault then
      c.g, c.d = FAULT, true
    elseif at > now then
      c.e = at
    end
    if not fault and c.e >= t then
      finish(c, r, offset)
      return c
    end
    c.on, c.n = true, n
    if not same then
      c.n, c.d = math.min(n, r.L), true
    end
    if same and not fault then c.t = t else finish(c, r, offset) end
  else
    local _, at, L, W, flags, n, v, t = get(forms[a], v)
    if W < 1000 or t - at > W then
      c.t = ending(now, r.W, r.W - offset)
      return forged(c)
    end
    if at - now > STEP then
      c.g, c.d = FAULT, true
      t = ending(now, W, t)
    elseif at > now then
      c.e = at
    end
    if c.e >= t + W then
      n, v = 0, 0
    elseif c.e >= t then
      n, v, t = 0, n, t + W
    end
    if n == 0 and v == 0 then
      c.t = ending(c.e, r.W, r.W - offset)
      return c
    end
    c.on = true
    if L == r.L and W == r.W and flags == r.flags then
      c.t = t
    else
      if W ~= r.W then
        n, v = n + share(v, t - c.e, W), 0
      end
      n, v, c.d = math.min(n, r.L), math.min(v, r.L), true
      c.t = ending(c.e, r.W, r.W - offset)
    end
    c.n, c.v = n, v
    c.u = share(v, c.t - c.e, r.W)
  end
  return c
end

-- visit is key k's cell for the next item: where it was forgotten in this call,
-- the instant of its last change is too.
local function visit(k, r, offset)
  local c = cells[k]
  if not c then return arrive(k, r, offset) end
  if c.e > now and not c.on and (r.flags < 2 or now >= r.b0) then
    c.e = now
    if c.a == FIXED then
      finish(c, r, offset)
    elseif c.a == COUNTER then
      c.t = ending(now, r.W, r.W - offset)
    end
  end
  return c
end

