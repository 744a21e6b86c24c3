-- Takes a conversation out of the index, unless it was given another mark. ARGV: the conversation, the mark.
local conversations, marks = unpack(KEYS)
if redis.call('HGET', marks, ARGV[1]) == ARGV[2] then
  redis.call('ZREM', conversations, ARGV[1])
  redis.call('HDEL', marks, ARGV[1])
end
return 0
