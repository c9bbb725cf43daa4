-- verb: raise. Propose a higher fence for a lock that is ours.
-- KEYS, ARGV as for request
-- returns { 1, now, 0 } accepted | { 2, now, mark } refused: it is not above the mark
--         | { 0, now, remaining ms } somebody else has it | { -1, now, -2 } nobody has it
--         | { -3, … } | { -5, … } as for request

local key, max_ttl = KEYS[1], ARGV[2]

look_at_clock()
local refusal, floor, highest = guard(KEYS[#KEYS], max_ttl, ARGV[3], ARGV[8], ARGV[9])
if refusal then return refusal end

local owner, reserved = whose(key, ARGV[6])
if type(owner) == 'table' then return owner end
if reserved then owner = OTHER end
if owner ~= MINE then return { owner, now, remaining(key) } end

local mark = accept(KEYS[2], ARGV[7], floor, highest, max_ttl)
if type(mark) == 'table' then return mark end
if mark == 0 then return { GRANTED, now, 0 } end
return { OUTBID, now, mark }
