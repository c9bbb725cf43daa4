-- verb: release. Drop the lock if it is ours, and touch nothing otherwise.
-- KEYS[1] the lock
-- ARGV[1] token
-- returns { 1, 0 } dropped | { 0, remaining ms } somebody else has it (-1: without a ttl)
--         | { -1, -2 } nobody has it

local key, token = KEYS[1], ARGV[1]

local owner = whose(key, token)
if type(owner) == 'table' then return owner end
if owner == MINE then
  local done = drop(key, token)
  if type(done) == 'table' then return done end
  return { 1, 0 }
end
return { owner, remaining(key) }
