-- node: status. What the node remembers of itself, and what the server says.
-- KEYS[1] the marker   ARGV[4] database
-- returns { 3, now, run, history, { field, value, … }, INFO }

local said = {}
for _, section in ipairs({ 'server', 'replication', 'persistence', 'memory', 'stats', 'commandstats' }) do
  said[#said + 1] = redis.call('INFO', section)
end
local run, history = identity(ARGV[4])
return { TOLD, clock(), run, history, redis.call('HGETALL', KEYS[1]), table.concat(said, '\n') }
