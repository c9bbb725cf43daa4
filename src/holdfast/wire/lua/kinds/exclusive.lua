-- kind: exclusive. The key is a string whose value is the holder's token: SET key token NX PX ttl.
-- While it is only reserved for somebody, a sign stands before the token.
--
-- A kind answers with a table { err = ... } where the server refused a command, and every verb
-- returns such a table as it is: conditions like WRONGTYPE or OOM reach the client under their own
-- name, in every server version.

local MINE, OTHER, FREE = 1, 0, -1

local PROMISED = '~'

-- Whose is it? -> MINE | OTHER | FREE, or an error; and true if it is only reserved
local function whose(key, token)
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then return value end
  if not value then return FREE end
  if value == token then return MINE end
  local reserved = string.sub(value, 1, 1) == PROMISED
  if reserved and string.sub(value, 2) == token then return MINE, true end
  return OTHER, reserved
end

-- Take it if it is free, for ttl milliseconds. -> true | false, or an error
local function take(key, token, ttl)
  local reply = redis.pcall('SET', key, token, 'NX', 'PX', ttl)
  if type(reply) == 'table' and reply.err then return reply end
  return reply and true or false
end

-- Reserve it for somebody if it is free, for ttl milliseconds. -> true | false, or an error
local function reserve(key, token, ttl)
  return take(key, PROMISED .. token, ttl)
end

-- Take what is only reserved, for ttl milliseconds. -> true, or an error
local function seize(key, token, ttl)
  local reply = redis.pcall('SET', key, token, 'PX', ttl)
  return reply.err and reply or true
end

-- Give it the full ttl again; it is known to be ours.
local function prolong(key, token, ttl)
  return redis.pcall('PEXPIRE', key, ttl)
end

-- Drop it; it is known to be ours. Needs no memory, so it works on a full server.
local function drop(key, token)
  return redis.pcall('DEL', key)
end

-- How long it still lives, in milliseconds: -1 without a ttl, -2 when gone.
local function remaining(key)
  return redis.pcall('PTTL', key)
end
