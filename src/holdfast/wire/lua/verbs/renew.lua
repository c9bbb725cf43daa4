-- verb: renew. Give the lock its full ttl again if it is ours.
-- KEYS[1] the lock
-- ARGV[1] token   ARGV[2] ttl in milliseconds
-- returns { 1, ttl } renewed | { 0, remaining ms } somebody else has it (-1: without a ttl)
--         | { -1, -2 } nobody has it

local key, token, ttl = KEYS[1], ARGV[1], ARGV[2]

local owner = whose(key, token)
if type(owner) == 'table' then return owner end
if owner == MINE then
  local done = prolong(key, token, ttl)
  if type(done) == 'table' then return done end
  return { 1, tonumber(ttl) }
end
return { owner, remaining(key) }
