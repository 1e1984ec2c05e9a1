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

