-- node: admit. Somebody knows that nothing was forgotten: grant from now on, until the next restart.
-- KEYS[1] the marker   ARGV[1] max_ttl   ARGV[4] database
-- returns { 3, now, 1 }

local now = clock()
write(
  KEYS[1], now, ARGV[4], 'until_ms', '0', 'floor_us', digits(now), 'why', 'admitted',
  'since_ms', digits(now / 1000))
if ARGV[1] ~= '0' then redis.call('HSETNX', KEYS[1], 'max_ttl_ms', ARGV[1]) end
return { TOLD, now, 1 }
