-- Reads the end of a conversation. ARGV: 'entries' or 'turns', and how many of them.
-- What comes back begins where the view does, or where the open turn does, whichever is first.
local unit, count = ARGV[1], tonumber(ARGV[2])
local found, problem = conversation()
if problem then
  return { problem }
elseif not found then
  return { 'none' }
end
local from
if unit == 'entries' then
  from = found.version - count + 1
elseif count == 0 then
  from = found.version + 1
elseif count < found.turns then
  from = tonumber(redis.call('LINDEX', turns, -count))
else
  from = 1
end
from = math.max(from, 1)
local first = from
if found.open == '1' then
  first = math.min(from, found.last_from)
end
local entries = {}
if first <= found.version then
  entries = redis.call('XRANGE', log, text(first), '+')
end
return { 'found', found.version, found.open, found.last_from, from, entries }
