-- verb: release. Drop the lock if it is ours, and hand it over to the first in line; wait no longer.
-- Touch nothing that is somebody else's.
-- KEYS[1] the lock   KEYS[3] its queue   KEYS[4] the leases of its waiters
-- KEYS[5] where it is noted that this token was released   the last one as for request
-- ARGV as for request, but ARGV[1] for how many milliseconds to note that; 0: not at all
-- returns { 1, 0, 0 } dropped | { 0, 0, remaining ms } somebody else has it (-1: without a ttl)
--         | { -1, 0, -2 } nobody has it
--
-- A lease that was ever repaired may have a renewal under way that would take the lock again.
-- Dropping comes first, and nothing that fails after it undoes it: a full server still frees.

local key, queue, token = KEYS[1], KEYS[3], ARGV[6]

if ARGV[1] ~= '0' then redis.pcall('SET', KEYS[5], '', 'PX', ARGV[1]) end  -- as far as there is memory
local owner = whose(key, token)
if type(owner) == 'table' then return owner end
if owner == MINE then
  local done = drop(key, token)
  if type(done) == 'table' then return done end
end
if redis.call('EXISTS', queue) == 1 then
  local here = line(key, queue, KEYS[4])
  here.leave(token)
  if owner ~= OTHER then
    look_at_clock()  -- how late it is does not matter: every waiter has a time of its own
    if not guard(KEYS[#KEYS], ARGV[2], ARGV[3], ARGV[8], NO_DEADLINE) then
      here.hand_over(ARGV[4], ARGV[7])
    end
  end
end
if owner == MINE then return { 1, 0, 0 } end
return { owner, 0, owner == FREE and -2 or remaining(key) }
