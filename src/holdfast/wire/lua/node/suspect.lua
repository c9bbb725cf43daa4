-- node: suspect. A client has seen the node's clock jump: keys may have ended too early. Abstain.
-- KEYS[1] the marker   ARGV[1] max_ttl   ARGV[2] by how many microseconds
-- ARGV[3] the node's time when the client last found it right   ARGV[4] database
-- returns { 3, now, 1 } | { 3, now, 0 } the same jump was reported before, and has been waited for
--
-- Every client sees a jump when it next speaks to the node, perhaps much later. It is the same jump
-- if the node abstained for one of that size after the client had last found its clock right, which
-- was when the clock that has jumped would have shown right + jump.

local SAME = 100000
-- Microseconds by which two clients may see the same jump differently. What is abstained for too
-- short because of that is less than the second that is added to every abstention.

local now = clock()
local known = redis.call('HMGET', KEYS[1], 'run', 'history', 'jump_us', 'jumped_us')
if known[3] and is_own(known[1], known[2], ARGV[4]) and known[4] + SAME > ARGV[3] + ARGV[2]
  and math.abs(known[3] - ARGV[2]) <= SAME then
  return { TOLD, now, 0 }
end
abstain(KEYS[1], now, ARGV[4], ARGV[1], 'stepped')
redis.call('HSET', KEYS[1], 'jump_us', ARGV[2], 'jumped_us', digits(now))
return { TOLD, now, 1 }
