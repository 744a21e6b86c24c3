-- Removes a conversation. ARGV: its mark in the index, or ''. From then on that mark makes no conversation:
-- whoever took it takes another one, so that the mark can be removed from the index.
local mark = tonumber(ARGV[1])
local holds_until = tonumber(redis.call('HGET', lease, 'until') or '0')
local voided = tonumber(redis.call('GET', void) or '0')
redis.call('UNLINK', meta, log, turns, batches, forks)
if holds_until > now() then
  redis.call('PEXPIREAT', lease, text(math.ceil(holds_until / 1000) + DAY))
else
  redis.call('UNLINK', lease)
end
if mark then
  redis.call('SET', void, text(math.max(mark, voided)), 'PX', text(DAY))
end
return { 'deleted' }
