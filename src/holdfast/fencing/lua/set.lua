-- set: give a key its new value, after enter.lua in the same script.
-- KEYS[2] the key
-- ARGV[2] the value
-- returns OK, or the server's own error

return redis.pcall('SET', KEYS[2], ARGV[2])
