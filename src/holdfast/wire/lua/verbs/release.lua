-- verb: release. Drop the lock if it is ours, and touch nothing otherwise.
-- KEYS[1] the lock   KEYS[2] where it is noted that this token was released
-- ARGV[1] token   ARGV[2] for how many milliseconds to note that; 0: not at all
-- returns { 1, 0, 0 } dropped | { 0, 0, remaining ms } somebody else has it (-1: without a ttl)
--         | { -1, 0, -2 } nobody has it
--
-- A lease that was ever repaired may have a renewal under way that would take the lock again.

local key, token = KEYS[1], ARGV[1]

if ARGV[2] ~= '0' then redis.pcall('SET', KEYS[2], '', 'PX', ARGV[2]) end  -- as far as there is memory
local owner = whose(key, token)
if type(owner) == 'table' then return owner end
if owner == MINE then
  local done = drop(key, token)
  if type(done) == 'table' then return done end
  return { 1, 0, 0 }
end
return { owner, 0, remaining(key) }
