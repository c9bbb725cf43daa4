-- verb: inspect. Say who has the lock and who waits for it. Changes nothing.
-- KEYS, ARGV as for request
-- returns { 7, now, the key's value or '', remaining ms, the highest fence or '',
--           waiters' tokens and stamps in turn, the same and until when they count as alive }

local queue, leases = KEYS[3], KEYS[4]

look_at_clock()
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then return holder end
return {
  7, now, holder or '', remaining(KEYS[1]), redis.call('GET', KEYS[2]) or '',
  redis.call('ZRANGE', queue, 0, -1, 'WITHSCORES'), redis.call('ZRANGE', leases, 0, -1, 'WITHSCORES'),
}
