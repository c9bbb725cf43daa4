-- verb: request. Take the lock if it is free and nobody waits before us; if it is already ours, or
-- reserved for us, take it for the full ttl. Otherwise perhaps wait in line.
-- KEYS[1] the lock   KEYS[2] its mark   KEYS[3] its queue   KEYS[4] the leases of its waiters
-- the last one the node's marker, if there is a guard
-- ARGV[1] ttl in milliseconds   ARGV[2] max_ttl   ARGV[3] evicting
-- ARGV[4] for how many milliseconds a lock is reserved   ARGV[5] place in line: see queue.lua
-- ARGV[6] token   ARGV[7] stamp   ARGV[8] database
-- ARGV[9] not after, in milliseconds of the node's clock
-- returns { 1, now, 0 } granted, and the stamp accepted as its fence
--         | { 1, now, mark } granted, and the stamp refused: it is not above the mark
--         | { 0, now, remaining ms } somebody else has it (-1: without a ttl)
--         | { 5, now, ms, rank, stamp } waiting in line, at this stamp: ask again then, if not
--           called before (-1: any time)
--         | { 6, now, mark } not taken into the queue: the stamp is not above the mark
--         | { -3, now, ms } the request came so much too late
--         | { -5, now, 0 } it is doubtful whether the node may grant: examine it
--
-- Asking again with the same token is granted again, so a request whose reply was lost may be
-- repeated. The new ttl then only lengthens what the node keeps.

local key, queue, leases = KEYS[1], KEYS[3], KEYS[4]
local ttl, max_ttl, claim, place, token, stamp = ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6], ARGV[7]

look_at_clock()
local refusal, floor, highest = guard(KEYS[#KEYS], max_ttl, ARGV[3], ARGV[8], ARGV[9])
if refusal then return refusal end

local awaited = redis.call('EXISTS', queue) == 1
local owner, reserved
if awaited then owner, reserved = whose(key, token) end
if type(owner) == 'table' then return owner end
if owner == FREE then
  local next = line(key, queue, leases).hand_over(claim, stamp, token)
  if type(next) == 'table' then return next end
  if next ~= true then owner, reserved = next == token and MINE or OTHER, true end
end

local taken = false
if not owner or owner == FREE then
  taken = take(key, token, ttl)
  if type(taken) == 'table' then return taken end
  if not taken then owner, reserved = whose(key, token) end
  if type(owner) == 'table' then return owner end
end
if not taken then
  if owner ~= MINE then
    if place == NOWHERE or place == KEPT then
      local left = remaining(key)
      return { REFUSED, now, left == -2 and tonumber(claim) or left }
    end
    local here = line(key, queue, leases)
    local placed = here.enqueue(token, stamp, place)
    if type(placed) == 'table' then return placed end
    return here.standing(token, claim, placed)
  end
  local done = reserved and seize(key, token, ttl) or prolong(key, token, ttl)
  if type(done) == 'table' then return done end
end
if awaited then line(key, queue, leases).leave(token) end

local mark = accept(KEYS[2], stamp, floor, highest, max_ttl)
if type(mark) == 'table' then return mark end
return { GRANTED, now, mark }
