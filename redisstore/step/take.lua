-- What takes and settlements do to a cell.

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

