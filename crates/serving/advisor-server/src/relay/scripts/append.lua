-- Returns `running`, `stop` or `lost`. Further arguments: the number of kept items, the end for the last batch, the number
-- of the first item, and the items. The id of an item is its number, and 1.
local known = redis.call('HMGET', state, 'run', 'stop', 'ended')
if known[1] ~= run then
  return 'lost'
end
local last = redis.call('XREVRANGE', items, '+', '-', 'COUNT', 1)[1]
local next = last and tonumber(string.match(last[1], '^%d+')) + 1 or 0
for at = 8, #ARGV do
  local number = ARGV[7] + at - 8
  if number >= next then
    redis.call('XADD', items, 'MAXLEN', ARGV[5], string.format('%.0f-1', number), 'item', ARGV[at])
  end
end
if ARGV[6] ~= '' then
  redis.call('HSET', state, 'ended', ARGV[6])
  redis.call('ZREM', begun, turn)
  redis.call('ZREM', owned, turn)
elseif not known[3] then
  own()
end
keep()
return known[2] and 'stop' or 'running'
