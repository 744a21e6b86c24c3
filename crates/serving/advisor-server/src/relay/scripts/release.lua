-- Removes a turn, unless another run has replaced it. Keys: those of a run. Arguments: turn, run.
if redis.call('HGET', KEYS[1], 'run') == ARGV[2] then
  redis.call('UNLINK', KEYS[1], KEYS[2])
  for at = 3, 5 do
    redis.call('ZREM', KEYS[at], ARGV[1])
  end
end
