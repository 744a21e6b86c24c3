-- Leaves the request to stop for the owner, if the turn is known.
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], 'stop', 1)
end
