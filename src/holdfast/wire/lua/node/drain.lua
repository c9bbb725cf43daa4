-- node: drain. Grant nothing until somebody admits the node; renewals go on.
-- KEYS[1] the marker   ARGV[1] max_ttl   ARGV[4] database
-- returns { 3, now, 1 }

local FOR_EVER = '9007199254740991'

local now = clock()
abstain(KEYS[1], now, ARGV[4], ARGV[1], 'drained')
redis.call('HSET', KEYS[1], 'until_ms', FOR_EVER, 'why', 'drained', 'since_ms', digits(now / 1000))
return { TOLD, now, 1 }
