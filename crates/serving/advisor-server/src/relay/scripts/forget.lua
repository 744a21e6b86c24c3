-- Removes turns. Keys: the three of the conversation, then those of the turns. Arguments: the turns.
for at, key in ipairs(KEYS) do
  if at > 3 then
    redis.call('UNLINK', key)
  else
    for _, turn in ipairs(ARGV) do
      redis.call('ZREM', key, turn)
    end
  end
end
