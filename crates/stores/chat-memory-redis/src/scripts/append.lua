-- Appends a batch. ARGV: the expected version, the batch's name, the fence or '', the mark of the index, the entry
-- that it follows or '' for the last one, the turn of the last entry or ''; then for each entry its turn, its body,
-- and whether the turn is open after it, '' if as before.
-- It is written where its name is new, it has entries, and fence, version, last turn and parent fit. Of a batch that
-- is not written comes back what there is, and the entries that stand under the name: what becomes of it is decided
-- by the one that asked. Nothing is written before all is checked, and the first write is one that the server refuses
-- when it has no room, so that what is refused is refused whole.
local expected, name, fence, mark = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local parent, last_turn = tonumber(ARGV[5]), ARGV[6]
local begins = 7

local found, problem = conversation()
if problem then
  return { problem }
end
local new = not found
found = found or { version = 0, turns = 0, forks = 0, number = 0, last_turn = '', last_from = 1, open = '0' }

local highest = tonumber(redis.call('HGET', lease, 'fence') or '')
local written = redis.call('HGET', batches, name)
if written or #ARGV < begins or (fence and highest and fence < highest) or found.version ~= expected
  or (last_turn ~= '' and last_turn ~= found.last_turn) or (parent and parent > found.version) then
  local known = {}
  if written then
    local first, last = string.match(written, '^(%d+)-(%d+)$')
    first, last = tonumber(first), tonumber(last)
    local entries = {}
    if first <= last then
      entries = redis.call('XRANGE', log, text(first), text(last))
    end
    local segment = segment_to(found, first)
    local follows = segment.forked and segment.first == first and text(segment.parent) or ''
    known = { first, last, follows, entries }
  end
  if damaged then
    return { 'damaged' }
  end
  return { 'refused', found.version, highest and text(highest) or '', found.last_turn or '', known }
elseif new and mark <= tonumber(redis.call('GET', void) or '0') then
  return { 'unmarked' }
end

local first = found.version + 1
if parent and parent < found.version then
  local number, turn_from = turn_at(found, parent)
  local turn, open = field_of(parent, 'turn'), field_of(parent, 'open')
  if damaged then
    return { 'damaged' }
  end
  redis.call('RPUSH', forks, table.concat({ text(first), text(parent), text(number), text(found.turns) }, ' '))
  found.forks = found.forks + 1
  found.number, found.last_turn, found.last_from, found.open = number, turn, turn_from, open or '1'
end
for n = begins, #ARGV, 3 do
  local turn, body, open = ARGV[n], ARGV[n + 1], ARGV[n + 2]
  found.version = found.version + 1
  if turn ~= found.last_turn then
    redis.call('RPUSH', turns, text(found.version))
    found.turns, found.number = found.turns + 1, found.number + 1
    found.last_turn, found.last_from, found.open = turn, found.version, '1'
  end
  if open ~= '' then
    found.open = open
  end
  redis.call('XADD', log, text(found.version) .. '-0', 'turn', turn, 'body', body, 'open', found.open)
end
redis.call('HSET', batches, name, text(first) .. '-' .. text(found.version))
redis.call('HSET', meta, 'format', FORMAT, 'version', text(found.version),
  'turns', text(found.turns), 'last_turn', found.last_turn, 'last_from', text(found.last_from), 'open', found.open,
  'forks', text(found.forks), 'number', text(found.number))
if fence then
  redis.call('HSET', lease, 'fence', text(fence))
end
return { 'written', found.version }
