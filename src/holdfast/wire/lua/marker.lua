-- marker: what a node remembers of itself, in one hash without a ttl. For scripts about a node.
--
--   run         the server's run that wrote this: new at every start
--   history     its replication history and the number of the database: new at every start, too,
--               and at every promotion; another one after SWAPDB
--   until_ms    before this time, by its own clock, the node grants nothing
--   floor_us    it accepts no fence up to this
--   highest_us  the highest that its clock ever showed, as far as somebody looked
--   max_ttl_ms  the longest ttl that a client may ask for; 0 or nothing: nobody has said
--   why         why it abstains, or last did: new | restarted | lost | stepped | drained
--               (since then init or admitted)
--   since_ms    when that was noticed
--   evicted     how many keys the server had evicted,
--   swapped     how often databases had been swapped when somebody last looked,
--   looked_ms   and when that was
--   durable     1: its clients have seen that it has every write on its disk before it answers
--   jump_us     by how much its clock was last seen to jump,
--   jumped_us   and when, by the clock after it

local TOLD, ABSTAINS, DISAGREES = 3, -2, -4

local USUAL_MAX_TTL = 60000

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Write a whole number. Lua itself would round it to 14 digits.
local function digits(number)
  return string.format('%.0f', number)
end

-- One fact from INFO. It is an error if it is not there, unless something else is given.
local function fact(section, pattern, otherwise)
  local found = string.match(redis.call('INFO', section), pattern) or otherwise
  if not found then error('no ' .. pattern .. ' in INFO ' .. section) end
  return found
end

-- Who this is: its run, and its history.
local function identity(db)
  return fact('server', 'run_id:(%x+)'), fact('replication', 'master_replid:(%x+)') .. ':' .. db
end

-- What may have taken keys and left the marker: evictions, and swaps.
local function losses()
  return fact('stats', 'evicted_keys:(%d+)'), fact('commandstats', 'cmdstat_swapdb:calls=(%d+)', '0')
end

-- Write who this is and what it has lost so far, and other fields.
local function write(marker, now, db, ...)
  local run, history = identity(db)
  local evicted, swapped = losses()
  local highest = math.max(now, tonumber(redis.call('HGET', marker, 'highest_us') or '0'))
  redis.call(
    'HSET', marker, 'run', run, 'history', history, 'evicted', evicted, 'swapped', swapped,
    'looked_ms', digits(now / 1000), 'highest_us', digits(highest), ...)
end

-- Does the marker speak of this server, as it is now?
local function is_own(known_run, known_history, db)
  local run, history = identity(db)
  return known_run == run and known_history == history
end

-- How long a node abstains, in milliseconds: until all that it may have forgotten has ended.
local function abstention(max_ttl)
  return math.ceil(max_ttl * 1.02) + 1000
end

-- Abstain from now on, for as long as it takes, or for longer if it does already. What was written
-- by a clock that has jumped since says nothing, unless it was for ever.
local function abstain(marker, now, db, max_ttl, why)
  local known = redis.call(
    'HMGET', marker, 'run', 'history', 'until_ms', 'floor_us', 'why', 'max_ttl_ms')
  local longest = math.max(tonumber(max_ttl), tonumber(known[6] or '0'))
  local wait = abstention(longest > 0 and longest or USUAL_MAX_TTL)
  local until_ms, floor = math.ceil(now / 1000) + wait, now + wait * 1000
  floor = math.max(floor, tonumber(known[4] or '0'))
  local longer = is_own(known[1], known[2], db) and tonumber(known[3] or '0') >= until_ms
  write(marker, now, db, 'floor_us', digits(floor), 'durable', '0')
  if longest > 0 then redis.call('HSET', marker, 'max_ttl_ms', digits(longest)) end
  if not longer or (why == 'stepped' and known[5] ~= 'drained') then
    redis.call(
      'HSET', marker, 'until_ms', digits(until_ms), 'why', why, 'since_ms', digits(now / 1000))
  end
end
