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

-- join makes the last place in a leaky bucket's queue a new one.
local function join(c)
  local l = c.e
  if c.on and c.l >= l then l = c.l + 1 end
  c.l = l
end

-- fits says whether a take is allowed. x is its cost; to a bucket x and y are its
-- cost as time, x below 0 where it is over what a full budget holds.
local function fits(c, r, x, y)
  local a = c.a
  if a <= LEAKY then
    if x < 0 then return false end
    if x == 0 and y == 0 then return true end
    local f, p = c.f - r.cf + x, c.p - r.cp + y
    if p < 0 then
      p, f = p + r.p, f - 1
    elseif p >= r.p then
      p, f = p - r.p, f + 1
    end
    if p > 0 then f = f + 1 end
    return f <= r.m
  elseif a == FIXED then
    return x == 0 or c.n + x <= r.L
  elseif a == COUNTER then
    return x == 0 or c.u + c.n + x <= r.L
  elseif a == LOG then
    return x == 0 or logs.sum(c) + x <= r.L
  end
  return a == ALL or x == 0
end

-- spend charges what fits.
local function spend(c, r, x, y)
  local a = c.a
  if a <= LEAKY then
    if x == 0 and y == 0 then return end
    if a == LEAKY then join(c) end
    local f, p = c.f + x, c.p + y
    if p >= r.p then p, f = p - r.p, f + 1 end
    c.f, c.p = f, p
  elseif x == 0 or a > LOG then
    return
  elseif a == LOG then
    logs.add(c, x)
  else
    c.n = c.n + x
  end
  c.on, c.d = true, true
end

-- hammer charges a denied take of a limit that charges attempts.
local function hammer(c, r, x, y)
  local a = c.a
  if a <= LEAKY then
    if x < 0 then return end
    if c.f < r.cf or c.f == r.cf and c.p < r.cp then c.f, c.p = r.cf, r.cp end
    if a == LEAKY then join(c) end
  elseif a > LOG or x > r.L then
    return
  elseif a == FIXED then
    if c.n < r.L then c.n = r.L end
  elseif a == COUNTER then
    local n = math.min(r.L, c.n + x)
    if n > c.n then c.n = n end
  else
    logs.push(c, r, x)
  end
  c.on, c.d = true, true
end

-- state is what the reply tells of a cell.
local function state(c)
  local a, g = c.a, c.g
  c.g = 0
  if c.on then g = g + 1 end
  if a == TOKEN then return put('<Bddd', g, c.e, c.f, c.p) end
  if a == LEAKY then return put('<Bdddd', g, c.e, c.f, c.p, c.l or 0) end
  if a <= COUNTER then return put('<Bddd', g, c.e, c.n, c.v) end
  return put('<Bd', g, c.e)
end

-- owe is n with more charged without asking: down to one full budget below empty.
local function owe(n, more, L)
  if more > 2 * L - n then return math.max(n, 2 * L) end
  return n + more
end

-- settle replaces the cost of a take. x is what is given back, or below 0 what is
-- owed; at is the take's instant, or its place in a leaky bucket. To a bucket x
-- and y are the difference as time; owed says which way, and 2 to the bottom. It
-- is true where Go must say the quota's window anew; then nothing is changed.
local function settle(c, r, owed, x, y, at)
  local a = c.a
  if a > LOG or x == 0 and y == 0 and owed == 0 then return end
  if a == LOG then return logs.settle(c, r, x, at) end
  if a <= LEAKY then
    if owed == 0 then
      if not c.on then return end
      if a == LEAKY and at ~= c.l then x, y = 0, 0 end
      if x > c.f or x == c.f and y >= c.p then return forget(c) end
      local f, p = c.f - x, c.p - y
      if p < 0 then p, f = p + r.p, f - 1 end
      c.f, c.p = f, p
    else
      local f, p = 2 * r.cf, 2 * r.cp -- the deepest
      if p >= r.p then p, f = p - r.p, f + 1 end
      if owed == 1 then
        local F, P = c.f + x, c.p + y
        if P >= r.p then P, F = P - r.p, F + 1 end
        if F < f or F == f and P < p then f, p = F, P end
      end
      if f < c.f or f == c.f and p < c.p then f, p = c.f, c.p end
      if a == LEAKY then join(c) end
      c.f, c.p, c.on = f, p, true
    end
    c.d = true
    return
  end
  if x < 0 then
    c.n, c.on, c.d = owe(c.n, -x, r.L), true, true
    return
  end
  if not c.on then return end
  local from = c.t - r.W
  if a == FIXED and r.flags >= 2 then
    if c.t == r.b1 then
      from = r.b0
    elseif c.t == r.b2 then
      from = r.b1
    else
      return true
    end
  end
  if at >= from and at < c.t then
    c.n = math.max(0, c.n - x)
  elseif a == COUNTER and at < from and at >= from - r.W then
    c.v = math.max(0, c.v - x)
    c.u = share(c.v, c.t - c.e, r.W)
  end
  c.d = true
  if c.n == 0 and c.v == 0 then forget(c) end
end

-- The sliding log: a header, and 16 bytes for each instant with takes: the
-- instant, and the units recorded up to and with it since the log began. What is
-- before base has left or was cut.
function makeLogs()
  local own = {}
  local RECORD = 16

  -- read is an entry at a place in what was got: its instant, and the units up
  -- to it; neither is past what the header says.
  local function read(c, body, place)
    local at, upto = get('<dd', body, place)
    if not (at <= c.last) then at = c.last end
    if not (upto <= c.total) then upto = c.total end
    return at, upto
  end

  -- entry is entry i, counted from 0. From c.from on they are in a list, to be
  -- written anew.
  local function entry(c, i)
    if c.list and i >= c.from then
      local e = c.list[i - c.from + 1]
      return e[1], e[2]
    end
    local from = HEAD + i * RECORD
    return read(c, call('GETRANGE', KEYS[c.k], from, from + RECORD - 1), 1)
  end

  -- first is the first entry from c.head on for which is(at, upto) holds; each
  -- next is likelier than the one before: it is found in steps that double.
  local function first(c, is)
    local low, high, step = c.head - 1, c.head, 1
    while high < c.count and not is(entry(c, high)) do
      low, high, step = high, high + step, step * 2
    end
    if high > c.count then high = c.count end
    while high - low > 1 do
      local mid = floor((low + high) / 2)
      if is(entry(c, mid)) then high = mid else low = mid end
    end
    return high
  end

  function own.sum(c) return c.total + c.added - c.base end

  -- leave lets entries up to and at an instant go.
  local function leave(c, at)
    if c.newest <= at then return forget(c) end
    local i = first(c, function(t) return t > at end)
    if i == c.count then return forget(c) end
    if i > c.head then
      local _, upto = entry(c, i - 1)
      c.head, c.base = i, math.max(c.base, upto)
    end
    if own.sum(c) <= 0 then forget(c) end
  end

  -- open takes the entries from i on into the list.
  local function open(c, i)
    local after, upto = c.list or {}, c.list and c.from or c.count
    if c.list and i >= upto then return end
    local list = {}
    if i < upto then
      local body = call('GETRANGE', KEYS[c.k], HEAD + i * RECORD, HEAD + upto * RECORD - 1)
      for n = 1, upto - i do list[n] = {read(c, body, (n - 1) * RECORD + 1)} end
    end
    for n = 1, #after do list[#list + 1] = after[n] end
    c.list, c.from = list, i
  end

  -- packed are the entries of the list, as they are written.
  local function packed(c)
    local texts = {}
    for i, e in ipairs(c.list) do texts[i] = put('<dd', e[1], e[2]) end
    return table.concat(texts)
  end

  local function empty(c)
    c.head, c.count, c.base, c.total, c.added, c.newest, c.new = 0, 0, 0, 0, 0, 0, true
    c.list = nil
  end

  function own.arrive(c, r)
    empty(c)
    local v = call('GETRANGE', KEYS[c.k], 0, HEAD - 1)
    if type(v) ~= 'string' then
      c.h, c.g = true, REPLACED
      return c
    end
    c.h = true
    if v == '' then return c end -- no key, or an empty one
    if v:byte() ~= LOG or #v < HEAD then
      if known(v) then other(c, v) else c.g = REPLACED end
      return c
    end
    local _, at, L, W
    _, at, L, W, c.base, c.total, c.head, c.count, c.newest = get(HEADER, v)
    if call('STRLEN', KEYS[c.k]) < HEAD + c.count * RECORD or c.head >= c.count
      or c.newest > at or c.base > c.total or c.total > 9007199254740991 or W < 1000 then
      empty(c)
      return forged(c)
    end
    c.last = at
    c.new, c.on = false, true
    local from
    if at - now > STEP then
      c.g, c.d = FAULT, true
      leave(c, at - W)
      if c.on then
        open(c, c.head)
        for _, e in ipairs(c.list) do e[1] = math.min(e[1], now) end
        c.newest = math.min(c.newest, now)
      end
    elseif at > now then
      c.e = at
    end
    if c.on then leave(c, c.e - W) end
    if c.on and (L ~= r.L or W ~= r.W) then
      c.d = true
      leave(c, c.e - r.W)
      if c.on then c.base = math.max(c.base, c.total - r.L) end
    end
    if not c.on then empty(c) end
    return c
  end

  function own.add(c, x)
    c.added, c.newest = c.added + x, c.e
  end

  -- push records units for which the oldest make room.
  function own.push(c, r, x)
    c.base = c.base + math.min(x, own.sum(c) + x - r.L)
    own.add(c, x)
  end

  -- reach is the instant of the entry by which k units, oldest first, are gone.
  local function reach(c, k)
    local upto = c.base + k
    if upto > c.total then return c.e end
    local i = first(c, function(_, u) return u >= upto end)
    if i == c.count then return c.e end
    local at = entry(c, i)
    return at
  end

  -- tell is a log's state for the reply, with the two instants that the decision
  -- will want: when remaining grows, and when the take would be allowed. The way
  -- that the take goes: 0 looks, 1 is spent, 2 is denied, 3 is denied and charged.
  function own.tell(c, r, x, way)
    local g, s, L = c.g, own.sum(c), r.L
    c.g = 0
    if c.on then g = g + 1 else s = 0 end
    local after, cut, new = s, 0, 0
    if way == 1 then
      after, new = s + x, x
    elseif way == 3 then
      cut, new = math.min(x, s + x - L), x
      after = s + x - cut
    end
    local old = after - new -- of what was there before, this stays
    local n1, t1, n2, t2 = 0, 0, 0, 0
    if after > 0 then
      n1 = after - (L - math.max(0, L - after) - 1)
      if n1 <= old then n1, t1 = cut + n1, reach(c, cut + n1) else n1 = 0 end
    end
    local over = after + x - L
    if way > 0 and x <= L and over > 0 and over <= old then
      n2, t2 = cut + over, reach(c, cut + over)
    end
    return put('<Bddddddd', g, c.e, s, c.newest, n1, t1, n2, t2)
  end

  function own.settle(c, r, x, at)
    if x < 0 then
      local s = c.on and own.sum(c) or 0
      local debt = owe(s, -x, r.L) - s
      if debt > 0 then own.add(c, debt) end
      c.on, c.d = true, true
      return
    end
    if not c.on then return end
    c.d = true
    if c.added > 0 then -- of this very instant, by takes of this call
      open(c, c.count)
      c.total = c.total + c.added
      c.list[#c.list + 1] = {c.e, c.total}
      c.count, c.added = c.count + 1, 0
    end
    open(c, first(c, function(t) return t >= at end))
    local back, before = 0, c.base
    if c.from > c.head then
      local _, upto = entry(c, c.from - 1)
      before = math.max(before, upto)
    end
    local list = {}
    for _, e in ipairs(c.list) do
      local units = e[2] - before
      before = math.max(before, e[2])
      if e[1] == at and units > 0 and back < x then
        local part = math.min(units, x - back)
        back, units = back + part, units - part
      end
      if units > 0 then
        list[#list + 1] = {e[1], e[2] - back}
      end
    end
    c.list, c.count, c.total = list, c.from + #list, c.total - back
    if own.sum(c) <= 0 then
      forget(c)
      return empty(c)
    end
    c.newest = entry(c, c.count - 1)
  end

  -- save writes the log: only what is new at its end, or all of it where that is
  -- little against what has left.
  function own.save(c, r, expire, write)
    local key = KEYS[c.k]
    if c.total + c.added > 4503599627370496 then -- count from the base again
      open(c, c.head)
      local list = {}
      for _, e in ipairs(c.list) do
        if e[2] > c.base then list[#list + 1] = {e[1], e[2] - c.base} end
      end
      c.list, c.from, c.head, c.count = list, 0, 0, #list
      c.total, c.base = c.total - c.base, 0
    end
    local from = c.list and c.from or c.count -- from here on it is written
    local whole = c.new or from <= c.head or c.head >= 64 and c.head * 2 >= c.count
    local merge, record = false, ''
    if c.added > 0 then
      -- Takes of one instant share an entry. A log that is as long as it may be
      -- lets its last entry move on instead: it stays longer, never shorter.
      local last = c.count > c.head and entry(c, c.count - 1)
      merge = last and (last == c.e or c.count - c.head >= r.most)
      c.total = c.total + c.added
      record = put('<dd', c.e, c.total)
    end
    local count = c.count
    if c.added > 0 and not merge then count = count + 1 end
    local function header(head)
      return put(HEADER, LOG, c.e, r.L, r.W, c.base, c.total, head, count - (c.head - head), c.newest)
    end
    local body = c.list and packed(c) or ''
    if whole and from > c.head then
      body = call('GETRANGE', key, HEAD + c.head * RECORD, HEAD + from * RECORD - 1) .. body
    elseif not whole and merge and body == '' then
      from = from - 1
    end
    if merge then body = body:sub(1, -RECORD - 1) end
    body = body .. record
    if whole then return write('SET', key, header(0) .. body, 'EXAT', expire) end
    if body ~= '' then write('SETRANGE', key, HEAD + from * RECORD, body) end
    write('SETRANGE', key, 0, header(c.head))
    write('EXPIREAT', key, expire)
  end

  return own
end

-- What instances hold ahead of a key is in its ledger, 23 bytes for each: which
-- instance, the number of its last wish, how many units at most, and until when.
local ENTRY, SIZE = '<I6I5I5I7', 23
local LONGEST = 60000000 -- no lease is longer
local ledgers = {}

-- left is how many whole units remain; q is the ticks of one, to a bucket.
local function left(c, r, q)
  local a = c.a
  if a == FIXED then return r.L - c.n end
  if a == COUNTER then return r.L - c.u - c.n end
  if a == LOG then return r.L - logs.sum(c) end
  local f, p = r.cf - c.f, r.cp - c.p
  if p < 0 then p, f = p + r.p, f - 1 end
  if f < 0 then return 0 end
  local units, rest = rarely().muldiv(f, r.p, q)
  rest = rest + p
  return units + (rest - fmod(rest, q)) / q
end

-- lease spends units ahead for an instance that still has some in hand, and is how
-- many: so few that what lies in leases stays within most, and within each
-- instance's part of it, and that the same share of what remains is never passed.
-- What an instance says in a wish replaces what was known of it.
local function lease(c, r, k, q, who, wish, held, wanted, most, percent, ttl)
  local v = ledgers[k] and ledgers[k].v or call('GET', KEYS[k])
  if type(v) ~= 'string' or fmod(#v, SIZE) ~= 0 then v = '' end
  local others, lying, claims, last = {}, 0, 1, now
  for at = 1, #v, SIZE do
    local id, number, units, ends = get(ENTRY, v, at)
    if ends - now > LONGEST then ends = now + LONGEST end -- the clock stepped back
    if id == who then
      if ends > now and number >= wish then return 0 end -- a later one came first
    elseif ends > now then
      others[claims] = put(ENTRY, id, number, units, ends)
      claims, lying = claims + 1, lying + units
      if ends > last then last = ends end
    end
  end
  local t = c.t -- a lease ends with its window
  if c.a == LOG then t = ending(c.e, r.W, r.W) end
  if t and t - c.e < ttl then ttl = t - c.e end
  local part = floor(most / claims)
  if part < 1 then part = 1 end
  local n = math.min(wanted, part - held, most - lying - held, floor(left(c, r, q) * percent / 100))
  if n < 1 then n = 0 end
  if now + ttl > last then last = now + ttl end
  ledgers[k] = {v = table.concat(others) .. put(ENTRY, who, wish, held + n, now + ttl), last = last}
  return n
end

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
