-- Returns the input of another run that has a live owner or has ended. Further argument: the input.
local known = redis.call('HMGET', state, 'run', 'input', 'ended')
if known[1] ~= run then
  if known[1] and (known[3] or redis.call('EXISTS', owner) == 1) then
    return known[2]
  end
  redis.call('UNLINK', state, items)
  redis.call('HSET', state, 'run', run, 'input', ARGV[5])
end
redis.call('SET', owner, run, 'PX', owned)
redis.call('SET', running, turn, 'PX', owned)
keep()
return false
