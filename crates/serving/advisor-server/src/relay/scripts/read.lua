-- Returns the run, its state and items. Keys: the state, the items, and the times until which turns are owned.
-- Arguments: the turn, the number of the first item, and the items and bytes of a page, at most. One item may be larger.
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
local page, bytes, next = {}, 0, ARGV[2] .. '-1'
while next do
  -- A few at a time, since items may be large.
  local found = redis.call('XRANGE', KEYS[2], next, '+', 'COUNT', 8)
  next = nil
  for _, item in ipairs(found) do
    bytes = bytes + #item[2][2]
    if #page == tonumber(ARGV[3]) or (#page > 0 and bytes > tonumber(ARGV[4])) then
      return {known[1], state, page}
    end
    page[#page + 1] = item
    next = string.gsub(item[1], '-1$', '-2')
  end
end
return {known[1], state, page}
