-- enter: let a holder in, unless the resource has seen a later one; its fence is remembered.
-- KEYS[1] where the resource's last fence is kept: its digits, without a ttl
-- ARGV[1] the fence: the digits of a whole number below 2^53
-- returns the error `FENCEDOFF last` if the resource has seen a later fence, or the server's own
--         (WRONGTYPE, OOM, ...): then nothing was written. Otherwise it returns nothing, and what
--         follows in the same script is run.
--
-- Numbers below 2^53 are compared exactly. They are never formatted here, which would round them to
-- 14 digits: what is stored and returned are the digits as they were given.

do
  local last = redis.pcall('GET', KEYS[1])
  if type(last) == 'table' then return last end
  if last and not string.match(last, '^%d+$') then
    return redis.error_reply('ERR ' .. KEYS[1] .. ' holds no fence: somebody else has written it')
  end
  if last and tonumber(last) > tonumber(ARGV[1]) then
    return redis.error_reply('FENCEDOFF ' .. last)
  end
  if last ~= ARGV[1] then
    local kept = redis.pcall('SET', KEYS[1], ARGV[1])
    if kept.err then return kept end
  end
end
