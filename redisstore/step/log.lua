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

