-- Returns the input of another run that has a live owner or a final end. Further argument: the input.
local known = redis.call('HMGET', state, 'run', 'input', 'ended')
if known[1] ~= run then
  local has_owner = tonumber(redis.call('ZSCORE', owned, turn) or 0) > clock()
  if known[1] and (known[3] == 'final' or has_owner) then
    return known[2]
  end
  redis.call('UNLINK', state, items)
  known[3] = false
  redis.call('HSET', state, 'run', run, 'input', ARGV[5])
  local last = redis.call('ZREVRANGE', begun, 0, 0, 'WITHSCORES')[2] or 0
  redis.call('ZADD', begun, last + 1, turn)
end
if not known[3] then
  own()
end
keep()
return false
