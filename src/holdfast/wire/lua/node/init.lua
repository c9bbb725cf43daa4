-- node: init. Somebody asserts that no lock is held: grant from now on.
-- KEYS[1] the marker   ARGV[1] max_ttl (0: whichever comes first)
-- ARGV[2] 1: only if there is no marker   ARGV[4] database
-- returns { 3, now, 1 } done | { 3, now, 0 } there was a marker

local now = clock()
if ARGV[2] == '1' and redis.call('EXISTS', KEYS[1]) == 1 then return { TOLD, now, 0 } end
local highest = redis.call('HGET', KEYS[1], 'highest_us')
redis.call('DEL', KEYS[1])
if highest then redis.call('HSET', KEYS[1], 'highest_us', highest) end  -- marks may be as high
write(
  KEYS[1], now, ARGV[4], 'until_ms', '0', 'floor_us', digits(now), 'why', 'init',
  'since_ms', digits(now / 1000))
if ARGV[1] ~= '0' then redis.call('HSET', KEYS[1], 'max_ttl_ms', ARGV[1]) end
return { TOLD, now, 1 }
