-- fence: a number that only rises. A node keeps a mark for every lock: the highest it accepted.
--
-- A mark is stored as it was sent, and kept for a week after it was last raised.

local KEPT = '604800000'

local USUAL_MAX_TTL = 60000
-- What the abstention is reckoned with below, where there is no guard; see marker.lua for the rest.

-- Accept a stamp as the fence of a lock that was just granted. -> 0, or what stands in its way, or
-- an error. A stamp further ahead than half of what the node would abstain for is refused, so that
-- no broken clock drives the mark away: ahead of the highest that the node's clock ever showed, so
-- that marks can be passed if it was set back. Without a guard nobody has noted that, and a stamp may
-- follow a mark that is itself ahead: with one node there is nobody else to ask.
local function accept(mark, stamp, floor, highest, max_ttl)
  local number, guarded = tonumber(stamp), max_ttl ~= '0'
  local ahead = (math.ceil((guarded and max_ttl or USUAL_MAX_TTL) * 1.02) + 1000) * 500
  if number <= floor or (guarded and number > highest + ahead) then
    local known = redis.pcall('GET', mark)
    if type(known) == 'table' then return known end
    return math.max(tonumber(known or '0'), floor, 1)
  end
  local known = redis.pcall('SET', mark, stamp, 'PX', KEPT, 'GET')  -- one call, if all is well
  if type(known) == 'table' then return known end
  local before = tonumber(known or '0')
  if number > before and (guarded or number <= math.max(now, before) + ahead) then return 0 end
  if known then redis.call('SET', mark, known, 'PX', KEPT) else redis.call('DEL', mark) end
  return math.max(before, floor, 1)
end
