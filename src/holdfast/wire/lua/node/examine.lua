-- node: examine. Somebody doubts that the node may grant: decide whether it abstains.
-- KEYS[1] the marker   ARGV[1] max_ttl   ARGV[4] database
-- returns { 3, now, 1 } it may grant
--         | { -2, now, ms left, why, ms ago, uptime s } it abstains
--         | { -4, now, max_ttl } it was told of another max_ttl
--
-- A node that has forgotten was told by whoever came first, perhaps by somebody who is wrong. So for
-- a while it believes in whoever has a longer max_ttl, and abstains for longer.

local marker, max_ttl, db = KEYS[1], ARGV[1], ARGV[4]

local now = clock()
local known = redis.call(
  'HMGET', marker, 'run', 'history', 'max_ttl_ms', 'evicted', 'swapped', 'until_ms', 'floor_us',
  'looked_ms', 'highest_us', 'why', 'since_ms')
local longest, given = tonumber(known[3] or '0'), tonumber(max_ttl)
local complete = known[6] and known[7] and known[8] and known[9] and known[10] and known[11]
local forgot = complete and known[10] ~= 'init' and known[10] ~= 'admitted'
  and known[11] + abstention(max_ttl) > now / 1000
if longest > given or (longest > 0 and longest < given and not forgot) then
  return { DISAGREES, now, longest }
end
local evicted, swapped = losses()
if not is_own(known[1], known[2], db) or not complete then
  abstain(marker, now, db, max_ttl, known[1] and 'restarted' or 'new')
elseif known[4] ~= evicted or known[5] ~= swapped then
  abstain(marker, now, db, max_ttl, 'lost')
else
  if longest > 0 and longest < given then
    local until_ms = math.max(tonumber(known[6]), known[11] + abstention(max_ttl))
    redis.call('HSET', marker, 'until_ms', digits(until_ms))
  end
  redis.call('HSET', marker, 'max_ttl_ms', max_ttl, 'looked_ms', digits(now / 1000))
end

local left = redis.call('HMGET', marker, 'until_ms', 'why', 'since_ms')
if tonumber(left[1]) > now / 1000 then
  local up = fact('server', 'uptime_in_seconds:(-?%d+)')
  return { ABSTAINS, now, math.ceil(left[1] - now / 1000), left[2], now / 1000 - left[3], tonumber(up) }
end
return { TOLD, now, 1 }
