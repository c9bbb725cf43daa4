-- verb: wait. Wait in line, or go on waiting; if the lock is free, it is reserved for the first.
-- KEYS, ARGV as for request; the stamp is the place in line
-- returns { 4, now, ms, stamp } it is reserved for us, for so long: request it
--         | { 5, … } | { 6, … } | { -3, … } | { -5, … } as for request
--
-- A node that abstains, or does not know whether it must, takes note of who waits all the same.

local key, claim, token = KEYS[1], ARGV[4], ARGV[6]

look_at_clock()
local refusal = guard(KEYS[#KEYS], ARGV[2], ARGV[3], ARGV[8], ARGV[9])
if refusal and refusal[1] ~= DOUBT then return refusal end

local owner, reserved = whose(key, token)
if type(owner) == 'table' then return owner end
if owner == MINE and not reserved then  -- an earlier request was granted: it waits for nothing
  return refusal or { RESERVED, now, remaining(key), tonumber(ARGV[7]) }
end

local here = line(key, KEYS[3], KEYS[4])
local placed = here.enqueue(token, ARGV[7], ARGV[5])
if type(placed) == 'table' then return placed end
if refusal then return refusal end

if owner == FREE then
  local next = here.hand_over(claim, '0', token)
  if type(next) == 'table' then return next end
  if next == token then
    here.call_up(token, claim, '0')  -- besides: the answer may come too late for its round
    owner = MINE
  end
end
if owner == MINE then return { RESERVED, now, remaining(key), placed } end
return here.standing(token, claim, placed)
