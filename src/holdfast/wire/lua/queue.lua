-- queue: who waits for a lock, and in which order.
--
-- Two sorted sets, which end by themselves a lease after somebody last asked:
--   the queue    waiters by stamp. A stamp orders a waiter everywhere, so nodes may differ in who
--                waits, and never in who is before whom
--   its leases   until when, in milliseconds of the node's clock, each waiter counts as alive; and
--                the mark: the highest stamp that was taken into the queue
--
-- A node takes a stamp only above its mark, so that nobody comes in before those who wait already;
-- unless the stamp is settled: a quorum of nodes has taken it. Only a waiter's own word makes its
-- lease longer. If the lock is reserved for it, its lease ends with the reservation: whoever does
-- not claim it is not asked again, unless it speaks.
--
-- A token ends with a sign and the name of its client's inbox, see wire/who.py.

local QUEUED, RESERVED, OUTRANKED = 5, 4, 6

local NOWHERE, SETTLED, LAST, KEPT = '0', '2', '3', '4'
-- How a waiter takes its place: not at all; at a settled stamp; here alone, and thus behind all; it
-- has one.

local LEASE = 3000
-- Milliseconds for which a waiter counts as alive after it was last heard of: three heartbeats.

local HEARTBEAT, POLLED = 1000, 300
-- Milliseconds within which a waiter asks by itself: one that could not be told, one that polls.

local FOREIGN = 100
-- Milliseconds after which the first in line looks again if the lock is held by somebody who does
-- not hand over: another program's lock on the same key.

local FEW, MOST = 16, 512
-- How many waiters are looked at at a time, after the first, and in one go. Those whom nobody hears
-- for are passed over, and forgotten a claim later unless they speak.

local MARK = 'mark'
local INBOX = 'hf:inbox:'
local HEARS, HEARS_FAR, POLLS, SIGN_AT = '+', '?', '-', 41
-- The sign of who has an inbox here, or perhaps on another node of a cluster, or none.

-- Return what can be done with the line: a table of functions. They are made only where somebody
-- waits, because making them costs as much as taking a lock.
local function line(key, queue, leases)
  local function whole(number)
    return string.format('%.0f', number)
  end

  -- Let a waiter leave, if it is there.
  local function leave(token)
    if redis.pcall('ZREM', queue, token) == 1 then redis.pcall('ZREM', leases, token) end
  end

  -- Take a waiter's place, unless it has one, and lengthen its lease. -> its stamp, or a reply
  local function enqueue(token, stamp, place)
    local placed = redis.pcall('ZSCORE', queue, token)
    if type(placed) == 'table' then return placed end
    if not placed then
      local mark = tonumber(redis.call('ZSCORE', leases, MARK) or '0')
      if tonumber(stamp) <= mark and place ~= SETTLED then
        if place ~= LAST then return { OUTRANKED, now, mark } end
        stamp = whole(mark + 1)
      end
      placed = stamp
      local added = redis.pcall('ZADD', queue, stamp, token)
      if type(added) == 'table' then return added end
      if tonumber(stamp) > mark then redis.call('ZADD', leases, stamp, MARK) end
    end
    local added = redis.pcall('ZADD', leases, whole(now / 1000 + LEASE), token)
    if type(added) == 'table' then return added end
    redis.call('PEXPIRE', queue, LEASE)
    redis.call('PEXPIRE', leases, LEASE)
    return tonumber(placed)
  end

  -- Tell a waiter that the lock is reserved for it, and propose its fence. -> false if nobody has
  -- heard it; nil if it could not be said
  local function call_up(token, claim, stamp)
    local sign = string.sub(token, SIGN_AT, SIGN_AT)
    if sign ~= HEARS and sign ~= HEARS_FAR then return true end
    local heard = redis.pcall(
      'PUBLISH', INBOX .. string.sub(token, SIGN_AT + 1),
      token .. ' ' .. whole(now) .. ' ' .. claim .. ' ' .. stamp)
    if type(heard) == 'table' then return nil end
    return heard > 0 or sign == HEARS_FAR
  end

  -- Reserve a free lock for the first in line who lives, and tell it, unless it is `me`.
  -- -> its token | true: there is nobody | false: there may be somebody further down | an error
  local function hand_over(claim, stamp, me)
    local looked, passed, few, deaf = 0, 0, 1, {}
    while looked < MOST do
      local waiters = redis.pcall('ZRANGE', queue, passed, passed + few - 1)
      if waiters.err then return waiters end
      if #waiters == 0 then return true end
      looked = looked + #waiters
      for _, token in ipairs(waiters) do
        local ends = redis.pcall('ZSCORE', leases, token)
        if type(ends) == 'table' then return ends end
        local inbox = string.sub(token, SIGN_AT)
        if not ends or tonumber(ends) < now / 1000 then
          leave(token)
        else
          local heard = token == me or (not deaf[inbox] and call_up(token, claim, stamp))
          if heard ~= false then
            local reserved = tonumber(claim)
            if heard == nil then reserved = reserved + HEARTBEAT end
            if string.sub(inbox, 1, 1) == POLLS then reserved = math.max(reserved, POLLED) end
            local taken = reserve(key, token, reserved)
            if type(taken) == 'table' then return taken end
            redis.pcall('ZADD', leases, whole(now / 1000 + reserved), token)
            return token
          end
          redis.pcall('ZADD', leases, whole(math.min(ends, now / 1000 + claim)), token)
          passed, deaf[inbox] = passed + 1, true
        end
      end
      few = FEW
    end
    return false
  end

  -- Say where a waiter stands, and in how many milliseconds it should ask again; -1: as usual.
  local function standing(token, claim, stamp)
    local rank, left = redis.call('ZRANK', queue, token) or 0, remaining(key)
    if left == -2 then left = tonumber(claim) end  -- it is free, and too many are to be passed over
    local holder = rank == 0 and redis.call('GET', key)
    if holder and string.sub(holder, 1, 1) ~= PROMISED
      and not string.find(string.sub(holder, SIGN_AT, SIGN_AT), '[+?-]') then
      left = left < 0 and FOREIGN or math.min(left, FOREIGN)
    end
    if rank > 1 or left < 0 then return { QUEUED, now, -1, rank, stamp } end
    return { QUEUED, now, left + 1 + rank * claim, rank, stamp }
  end

  return {
    leave = leave, enqueue = enqueue, call_up = call_up, hand_over = hand_over, standing = standing,
  }
end
