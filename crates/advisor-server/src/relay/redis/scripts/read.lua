-- Returns the run, its state and items. Keys: the state, the items, and the times until which turns are owned.
-- Arguments: the turn, the number of the first item, and the number of items.
local known = redis.call('HMGET', KEYS[1], 'run', 'ended')
if not known[1] then
  return false
end
local state = 'interrupted'
if known[2] then
  state = 'ended'
elseif tonumber(redis.call('ZSCORE', KEYS[3], ARGV[1]) or 0) > clock() then
  state = 'running'
end
return {known[1], state, redis.call('XRANGE', KEYS[2], ARGV[2] .. '-1', '+', 'COUNT', ARGV[3])}
