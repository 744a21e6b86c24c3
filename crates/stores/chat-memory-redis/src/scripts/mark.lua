-- Puts a conversation into the index of its tenant and gives its mark, which is higher than all before.
local conversations, marks = unpack(KEYS)
local time = redis.call('TIME')
local last = tonumber(redis.call('HGET', marks, ARGV[1]) or '0')
local mark = math.max(time[1] * 1000000 + time[2], last + 1)
redis.call('ZADD', conversations, 0, ARGV[1])
redis.call('HSET', marks, ARGV[1], string.format('%.0f', mark))
return mark
