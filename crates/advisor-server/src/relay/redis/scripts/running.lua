-- Returns the turn that began last of those that have a live owner.
for _, turn in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, -1)) do
  if tonumber(redis.call('ZSCORE', KEYS[2], turn) or 0) > clock() then
    return turn
  end
end
return false
