-- guard: may this node grant? For every script that can create a lock's key.
--
-- Here is only the quick question whether the node is as it was when it last could; marker.lua says
-- what it remembers of itself. If there is any doubt the client has the node examined, which
-- decides (node/examine.lua), and asks again.

local GRANTED, REFUSED, MISSED, OUTBID, LATE, DOUBT = 1, 0, -1, 2, -3, -5

local NO_DEADLINE = '0000000000000'

local LOOK_AGAIN = 1000
-- Milliseconds after which somebody looks whether keys were lost behind the marker's back. A marker
-- that comes back after it was away has not been looked at for longer.

local now
-- What the node's clock showed when the script looked, in microseconds. Such numbers are exact.

local function look_at_clock()
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- -> nil, the floor of the node's fences and the highest that its clock ever showed, or the reply
-- that says why not
-- max_ttl 0: no guard. evicting 1: the server may evict keys, so look every time.
local function guard(marker, max_ttl, evicting, db, not_after)
  if not_after ~= NO_DEADLINE and now > not_after * 1000 then
    return { LATE, now, math.ceil(now / 1000 - not_after) }
  end
  if max_ttl == '0' then return nil, 0, now end
  local known = redis.pcall(
    'HMGET', marker, 'history', 'until_ms', 'floor_us', 'max_ttl_ms', 'looked_ms', 'highest_us')
  if known.err then return known end
  local info = redis.pcall('INFO', 'replication')
  if type(info) == 'table' then return info end
  local history = string.match(info, 'master_replid:(%x+)')
  if not history or known[1] ~= history .. ':' .. db or (known[4] and known[4] ~= max_ttl)
    or not (known[2] and known[3] and known[5] and known[6])
    or tonumber(known[2]) > now / 1000 then
    return { DOUBT, now, 0 }
  end
  local highest = math.max(tonumber(known[6]), now)
  if not known[4] then redis.call('HSET', marker, 'max_ttl_ms', max_ttl) end
  if evicting == '1' or math.abs(now / 1000 - known[5]) >= LOOK_AGAIN then
    local server, stats, commands =
      redis.pcall('INFO', 'server'), redis.pcall('INFO', 'stats'), redis.pcall('INFO', 'commandstats')
    local before = redis.call('HMGET', marker, 'run', 'evicted', 'swapped')
    if before[1] ~= string.match(server, 'run_id:(%x+)')
      or before[2] ~= string.match(stats, 'evicted_keys:(%d+)')
      or before[3] ~= (string.match(commands, 'cmdstat_swapdb:calls=(%d+)') or '0') then
      return { DOUBT, now, 0 }
    end
    local done = redis.pcall(
      'HSET', marker, 'looked_ms', string.format('%.0f', now / 1000),
      'highest_us', string.format('%.0f', highest))
    if type(done) == 'table' then return done end
  end
  return nil, tonumber(known[3]), highest
end
