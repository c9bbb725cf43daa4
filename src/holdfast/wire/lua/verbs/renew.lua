-- verb: renew. Give the lock its full ttl again if it is ours. With a stamp also repair: take it
-- again if nobody has it, or it is only reserved for somebody, and this node may grant.
-- KEYS, ARGV as for request; the stamp is the lease's fence, or 0
-- KEYS[5] where it is noted that this token was released
-- returns { 1, now, 0 } renewed | { -1, now, 1 } it was gone, and is taken again
--         | { 0, now, remaining ms } somebody else has it (-1: without a ttl)
--         | { -1, now, -2 } nobody has it, and it is not to be repaired, or was released
--         | { -3, … } | { -5, … } as for request, where nobody has it

local key, ttl, token = KEYS[1], ARGV[1], ARGV[6]

look_at_clock()
local owner, reserved = whose(key, token)
if type(owner) == 'table' then return owner end
if reserved then owner = FREE end  -- nobody's vote: whoever is called has not claimed it
if owner == MINE then
  local done = prolong(key, token, ttl)
  if type(done) == 'table' then return done end
  return { GRANTED, now, 0 }
end
if owner == OTHER then return { REFUSED, now, remaining(key) } end
if tonumber(ARGV[7]) == 0 or redis.call('EXISTS', KEYS[5]) == 1 then
  return { MISSED, now, -2 }
end

local refusal, floor, highest = guard(KEYS[#KEYS], ARGV[2], ARGV[3], ARGV[8], ARGV[9])
if refusal then return refusal end
local taken = reserved and seize(key, token, ttl) or take(key, token, ttl)
if type(taken) == 'table' then return taken end
accept(KEYS[2], ARGV[7], floor, highest, ARGV[2])  -- a fence below the mark is still the lease's own
return { MISSED, now, 1 }
