-- Candidates for the list of a tenant, in the order of their bytes. ARGV: after which one or '', how many.
local from = '-'
if ARGV[1] ~= '' then
  from = '(' .. ARGV[1]
end
return redis.call('ZRANGEBYLEX', KEYS[1], from, '+', 'LIMIT', 0, ARGV[2])
