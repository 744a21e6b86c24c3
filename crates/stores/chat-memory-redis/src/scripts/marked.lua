-- The mark of a conversation in the index, or 0.
return tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or '0')
