-- Returns the turns that have a live owner, in the order of their beginnings.
local running = {}
for _, turn in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if tonumber(redis.call('ZSCORE', KEYS[2], turn) or 0) > clock() then
    running[#running + 1] = turn
  end
end
return running
