-- Follows the beginning of the scripts about leases.
local found = redis.call('HMGET', lease, 'fence', 'turn', 'until')
local held = { fence = tonumber(found[1] or ''), turn = found[2], until_time = tonumber(found[3] or '0') }
local time = now()

-- Where no conversation keeps it, a lease is forgotten a day after its time.
local function hold(fence, turn, until_time)
  redis.call('HSET', lease, 'fence', text(fence), 'turn', turn, 'until', text(until_time))
  if redis.call('EXISTS', meta) == 1 then
    redis.call('PERSIST', lease)
  else
    redis.call('PEXPIREAT', lease, text(math.ceil(until_time / 1000) + DAY))
  end
end
