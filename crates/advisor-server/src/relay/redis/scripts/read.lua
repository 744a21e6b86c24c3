-- Returns the run, its state and items. Arguments: the number of the first item, and the number of items.
local known = redis.call('HMGET', KEYS[1], 'run', 'ended')
if not known[1] then
  return false
end
local state = 'interrupted'
if known[2] then
  state = 'ended'
elseif redis.call('EXISTS', KEYS[3]) == 1 then
  state = 'running'
end
return {known[1], state, redis.call('XRANGE', KEYS[2], ARGV[1] .. '-1', '+', 'COUNT', ARGV[2])}
