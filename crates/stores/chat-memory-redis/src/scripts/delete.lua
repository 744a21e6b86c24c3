-- Removes a conversation. Its lease stays, with its fence. ARGV: its mark in the index, or ''. From then on that mark makes no conversation:
-- whoever took it takes another one, so that the mark can be removed from the index.
local mark = tonumber(ARGV[1])
local voided = tonumber(redis.call('GET', void) or '0')
redis.call('UNLINK', meta, log, turns, batches, forks)
if mark then
  redis.call('SET', void, text(math.max(mark, voided)), 'PX', text(DAY))
end
return { 'deleted' }
