-- Reads the end of a branch. ARGV: 'entries' or 'turns', how many of them, and the tip of the branch, '' for the
-- one that was written last. What comes back begins where the view does, or where the open turn does, whichever
-- is first; with it, of which segments it is.
local unit, count, tip = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local found, problem = conversation()
if problem then
  return { problem }
elseif not found then
  return { 'none' }
end
tip = tip or found.version
if tip > found.version then
  return { 'none' }
end
local number, turn_from, open = found.number, found.last_from, found.open
if tip < found.version then
  number, turn_from = turn_at(found, tip)
  -- That of a missing entry is not known: its turn may be open.
  open = tip > 0 and (field_of(tip, 'open') or '1') or '0'
end

local from
if count == 0 then
  from = tip + 1
elseif unit == 'turns' then
  from = count >= number and 1 or turn_start(found, number - count + 1, tip)
else
  local at, segment = tip, segment_to(found, tip)
  while segment.parent > 0 and at - segment.first + 1 < count do
    count = count - (at - segment.first + 1)
    at = segment.parent
    segment = segment_to(found, at)
  end
  from = math.max(segment.first, at - count + 1)
end
local read_from = from
if open == '1' then
  read_from = math.min(from, turn_from)
end

local segments, at = {}, tip
while at > 0 and at >= read_from do
  local segment = segment_to(found, at)
  local parent = segment.forked and segment.first >= read_from and text(segment.parent) or ''
  table.insert(segments, 1, { math.max(segment.first, read_from), at, parent })
  at = segment.parent
end
local entries = {}
for _, segment in ipairs(segments) do
  for _, entry in ipairs(redis.call('XRANGE', log, text(segment[1]), text(segment[2]))) do
    entries[#entries + 1] = entry
  end
end
if damaged then
  return { 'damaged' }
end
return { 'found', found.version, open, turn_from, from, segments, entries }
