-- node: adopt. A server that has every write on its disk before it answers finds the last marker
-- after a restart, and all locks: then the memory is that of the new run. But only if that was so
-- before the restart, too.
-- KEYS[1] the marker   ARGV[2] 1: it has, now   ARGV[4] database
-- returns { 3, now, 1 } adopted | { 3, now, 0 } there was nothing to adopt, or it may be another's

local marker, durable, db = KEYS[1], ARGV[2], ARGV[4]

local now = clock()
local known = redis.call('HMGET', marker, 'run', 'history', 'durable')
if not known[1] then return { TOLD, now, 0 } end
if is_own(known[1], known[2], db) then
  redis.call('HSET', marker, 'durable', durable)
  return { TOLD, now, 0 }
end
local evicted, swapped = losses()
-- A server that followed another one has that one's memory; a database that was swapped, another's.
if durable ~= '1' or known[3] ~= '1' or string.match(known[2], '%d+$') ~= db
  or string.match(fact('replication', 'master_replid2:(%x+)'), '[^0]')
  or evicted ~= '0' or swapped ~= '0' then
  return { TOLD, now, 0 }
end
write(marker, now, db)
return { TOLD, now, 1 }
