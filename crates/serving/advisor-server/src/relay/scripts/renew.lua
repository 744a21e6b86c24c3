-- Keys: the state and the items of a turn, then those of the conversation: the running turns in the order of their
-- beginnings, the times until which turns are owned, and the times of their last appends.
-- Arguments: turn, run, milliseconds of an owner, milliseconds of a turn.
local state, items, begun, owned, turns = unpack(KEYS)
local turn, run, owner_ttl, kept_ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

-- Renews the owner.
local function own()
  redis.call('ZADD', owned, clock() + owner_ttl, turn)
end

-- Keeps the turn from expiring.
local function keep()
  local now = clock()
  redis.call('ZADD', turns, now, turn)
  -- Their keys have expired.
  for _, expired in ipairs(redis.call('ZRANGEBYSCORE', turns, '-inf', now - 2 * kept_ttl)) do
    for _, key in ipairs({begun, owned, turns}) do
      redis.call('ZREM', key, expired)
    end
  end
  for _, key in ipairs(KEYS) do
    redis.call('PEXPIRE', key, kept_ttl)
  end
end
