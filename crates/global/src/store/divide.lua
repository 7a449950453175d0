-- Divides limits over routers: what fleet::lease::Authority does, on the store's state and by its clock.
--
-- KEYS: what is known of the whole, the routers, then one hash for each bucket.
-- ARGV: router, routers that it knows of, whether silent routers' parts are kept back, length of a lease in
--       ms, parts that make all, ms for which the router still holds leases; then for each bucket what it is
--       asked for and what the router holds.
-- Returns: routers, then one part for each bucket.

local REMEMBERED = 600000
local FLOOR = 0.25
-- Half of the time between two asks: what was granted so much earlier than what a router holds it has given up.
local EARLIER = 333

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local router, told, reserves = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local lease, all = tonumber(ARGV[4]), tonumber(ARGV[5])
local leased_for = math.min(tonumber(ARGV[6]), lease)
local FIRST = 7

redis.call('HSETNX', KEYS[1], 'started', now)
redis.call('PEXPIRE', KEYS[1], REMEMBERED)
local started = tonumber(redis.call('HGET', KEYS[1], 'started'))
local expected = tonumber(redis.call('HGET', KEYS[1], 'expected') or '0')
-- Until all leases of former state must have ended nothing is known of who holds what.
local learns = now - started < lease
if learns then
  if told > expected then expected = told end
elseif now - started >= REMEMBERED then
  expected = 0
end
redis.call('HSET', KEYS[1], 'expected', expected)

redis.call('HSET', KEYS[2], router, now .. ':' .. (now + leased_for))
redis.call('PEXPIRE', KEYS[2], REMEMBERED)
local heard, leased = 0, {}
local routers = redis.call('HGETALL', KEYS[2])
for at = 1, #routers, 2 do
  local asked, until_ms = string.match(routers[at + 1], '^(%d+):(%d+)$')
  if now - tonumber(asked) >= REMEMBERED then
    redis.call('HDEL', KEYS[2], routers[at])
  else
    heard = heard + 1
    leased[routers[at]] = tonumber(until_ms)
  end
end
local known = math.max(heard, expected, 1)
local safe = reserves and math.ceil(all / known) or 0

-- The part up to which everybody gets what they wish.
local function level_of(wishes, whole)
  local sorted = {}
  for _, wish in ipairs(wishes) do
    if wish > 0 then sorted[#sorted + 1] = wish end
  end
  table.sort(sorted)
  local left = whole
  for at, wish in ipairs(sorted) do
    local equal = left / (#sorted - at + 1)
    if wish > equal then return equal end
    left = left - wish
  end
  return math.huge
end

-- Max-min fair; the last of the demands is the router's own.
local function fair_of(demands, whole)
  local asking = 0
  for _, demand in ipairs(demands) do
    if demand > 0 then asking = asking + 1 end
  end
  local equal = whole / math.max(asking, 1)
  local wishes, sum = {}, 0
  for at, demand in ipairs(demands) do
    local wish = 0
    if demand > 0 then wish = math.max(demand, FLOOR * equal) end
    wishes[at] = wish
    sum = sum + wish
  end
  if sum <= 0 then return 0 end
  if sum <= whole then return wishes[#wishes] * whole / sum end
  return math.min(wishes[#wishes], level_of(wishes, whole))
end

local answer = { known }
for bucket = 3, #KEYS do
  local demand = tonumber(ARGV[FIRST + 2 * (bucket - 3)])
  local holds = tonumber(ARGV[FIRST + 2 * (bucket - 3) + 1])
  local demands, outstanding = {}, {}
  -- What is granted, until when: a router knows one of these, since answers may be lost.
  local granted = {}
  local leases = redis.call('HGETALL', KEYS[bucket])
  for at = 1, #leases, 2 do
    local asked, wanted, grants = string.match(leases[at + 1], '^(%d+) (%S+) (%S*)$')
    local asks = now - tonumber(asked) < lease
    local out = 0
    for share, ends in string.gmatch(grants, '(%d+):(%d+)') do
      share, ends = tonumber(share), tonumber(ends)
      if now < ends then
        out = math.max(out, share)
        if leases[at] == router and ends + EARLIER >= now + leased_for then
          granted[#granted + 1] = string.format('%d:%d', share, ends)
        end
      end
    end
    if leases[at] == router then
      -- Its demand comes last.
    elseif not asks and out == 0 then
      redis.call('HDEL', KEYS[bucket], leases[at])
    else
      outstanding[leases[at]] = out
      demands[#demands + 1] = asks and tonumber(wanted) or 0
    end
  end
  granted[#granted + 1] = string.format('%d:%d', holds, now + leased_for)
  demands[#demands + 1] = demand
  -- What the others may be spending at this instant, and what of that is out of reach for longer.
  local unheard = (known - heard) * safe
  local spent, reserved = unheard, unheard
  for other, until_ms in pairs(leased) do
    if other ~= router then
      local out = outstanding[other] or 0
      if now < until_ms then
        spent = spent + out
      else
        spent = spent + math.max(out, safe)
        reserved = reserved + safe
      end
    end
  end
  local free = math.max(all - spent, 0)
  local share
  if learns then
    share = math.min(holds, free)
  else
    local whole = math.max(all - reserved, 0)
    share = math.min(math.floor(fair_of(demands, whole / all) * all), free)
  end
  granted[#granted + 1] = string.format('%d:%d', share, now + lease)
  redis.call('HSET', KEYS[bucket], router,
    string.format('%d %.9g %s', now, demand, table.concat(granted, ',')))
  redis.call('PEXPIRE', KEYS[bucket], REMEMBERED)
  answer[#answer + 1] = share
end
return answer
