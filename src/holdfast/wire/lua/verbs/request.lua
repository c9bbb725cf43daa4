-- verb: request. Take the lock if it is free; if it is already ours, take it again.
-- KEYS[1] the lock   KEYS[2] its mark   the last one the node's marker, if there is a guard
-- ARGV[1] ttl in milliseconds   ARGV[2] max_ttl   ARGV[3] evicting   ARGV[4] token
-- ARGV[5] stamp   ARGV[6] database   ARGV[7] not after, in milliseconds of the node's clock
-- returns { 1, now, 0 } granted, and the stamp accepted as its fence
--         | { 1, now, mark } granted, and the stamp refused: it is not above the mark
--         | { 0, now, remaining ms } somebody else has it (-1: without a ttl)
--         | { -3, now, ms } the request came so much too late
--         | { -5, now, 0 } it is doubtful whether the node may grant: examine it
--
-- Asking again with the same token is granted again, so a request whose reply was lost may be
-- repeated. The new ttl then only lengthens what the node keeps.

local key, ttl, max_ttl, token = KEYS[1], ARGV[1], ARGV[2], ARGV[4]

local refusal, floor, highest = guard(KEYS[#KEYS], max_ttl, ARGV[3], ARGV[6], ARGV[7])
if refusal then return refusal end

local taken = take(key, token, ttl)
if type(taken) == 'table' then return taken end
if not taken then
  local owner = whose(key, token)
  if type(owner) == 'table' then return owner end
  if owner ~= MINE then return { REFUSED, now, remaining(key) } end
  local done = prolong(key, token, ttl)
  if type(done) == 'table' then return done end
end

local mark = accept(KEYS[2], ARGV[5], floor, highest, max_ttl)
if type(mark) == 'table' then return mark end
return { GRANTED, now, mark }
