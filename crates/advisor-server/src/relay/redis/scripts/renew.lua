-- Keys: the state, the items and the owner of a turn, then the running turn and the turns of the conversation.
-- Arguments: turn, run, milliseconds of an owner, milliseconds of a turn.
local state, items, owner, running, turns = unpack(KEYS)
local turn, run, owned, kept = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- Keeps the turn from expiring.
local function keep()
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZADD', turns, now, turn)
  -- Their keys have expired.
  redis.call('ZREMRANGEBYSCORE', turns, '-inf', now - 2 * kept)
  for _, key in ipairs({state, items, turns}) do
    redis.call('PEXPIRE', key, kept)
  end
end
