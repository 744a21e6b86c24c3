-- Follows the beginning of the scripts about leases.
local found = redis.call('HMGET', lease, 'fence', 'turn', 'until')
local held = { fence = tonumber(found[1] or ''), turn = found[2], until_time = tonumber(found[3] or '0') }
local time = now()

-- A lease stays for ever, since its fence does.
local function hold(fence, turn, until_time)
  redis.call('HSET', lease, 'fence', text(fence), 'turn', turn, 'until', text(until_time))
end
