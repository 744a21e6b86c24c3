-- Candidates for the list of a tenant, in the order of their bytes or against it.
-- ARGV: after which one or '', how many, 'up' or 'down'.
local after = '(' .. ARGV[1]
if ARGV[3] == 'down' then
  if ARGV[1] == '' then
    after = '+'
  end
  return redis.call('ZREVRANGEBYLEX', KEYS[1], after, '-', 'LIMIT', 0, ARGV[2])
end
if ARGV[1] == '' then
  after = '-'
end
return redis.call('ZRANGEBYLEX', KEYS[1], after, '+', 'LIMIT', 0, ARGV[2])
