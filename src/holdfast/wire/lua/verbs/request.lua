-- verb: request. Take the lock if it is free; if it is already ours, take it again.
-- KEYS[1] the lock
-- ARGV[1] token   ARGV[2] ttl in milliseconds
-- returns { 1, ttl } granted | { 0, remaining ms } somebody else has it (-1: without a ttl)
--
-- Asking again with the same token is granted again, so a request whose reply was lost may be
-- repeated. The new ttl then only lengthens what the node keeps.

local key, token, ttl = KEYS[1], ARGV[1], ARGV[2]

local taken = take(key, token, ttl)
if type(taken) == 'table' then return taken end
if taken then return { 1, tonumber(ttl) } end

local owner = whose(key, token)
if type(owner) == 'table' then return owner end
if owner == MINE then
  local done = prolong(key, token, ttl)
  if type(done) == 'table' then return done end
  return { 1, tonumber(ttl) }
end
return { 0, remaining(key) }
