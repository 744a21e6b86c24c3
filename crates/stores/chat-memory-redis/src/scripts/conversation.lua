-- Begins every script about one conversation. Lua's numbers are exact up to 2^53.
local meta, log, turns, batches, lease, void, forks = unpack(KEYS)

local FORMAT = '1'
local DAY = 86400 * 1000

local function text(number)
  return string.format('%.0f', number)
end

-- The server's time, in microseconds.
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- The conversation, or nothing where there is none; then a word for what forbids to touch it.
-- A key of another type raises an error here, before anything is written.
local function conversation()
  local format, version, runs, last_turn, last_from, open, forked_then, number = unpack(redis.call('HMGET', meta,
    'format', 'version', 'turns', 'last_turn', 'last_from', 'open', 'forks', 'number'))
  local listed, forked = redis.call('LLEN', turns), redis.call('LLEN', forks)
  redis.call('XLEN', log)
  redis.call('HLEN', batches)
  local parts = redis.call('EXISTS', meta, log, turns, batches)
  if parts == 0 and forked == 0 then
    return nil, nil
  elseif format and format ~= FORMAT then
    return nil, 'unknown format'
  elseif parts < 4 or listed ~= tonumber(runs) or forked ~= tonumber(forked_then) then
    return nil, 'damaged'
  end
  return {
    version = tonumber(version), turns = listed, forks = forked, number = tonumber(number),
    last_turn = last_turn, last_from = tonumber(last_from), open = open,
  }, nil
end

-- Whether a fork was changed around the store. Then what follows from the forks means nothing.
local damaged = false

-- A fork is kept as: the entry that does not follow the one before it, what it follows, the number of the turn
-- there, and how many elements the list of turns had then. One that is none ends whatever follows it backwards.
local function fork_at(index)
  local first, parent, number, offset =
    string.match(redis.call('LINDEX', forks, index), '^(%d+) (%d+) (%d+) (%d+)$')
  first, parent, number, offset = tonumber(first), tonumber(parent), tonumber(number), tonumber(offset)
  if not first or parent >= first then
    damaged = true
    return { first = 0, parent = 0, number = 0, offset = 0 }
  end
  return { first = first, parent = parent, number = number, offset = offset }
end

-- How many of the first so many numbers, which grow, are not beyond a limit.
local function up_to(limit, count, number_at)
  local low, high = 0, count
  while low < high do
    local middle = math.floor((low + high) / 2)
    if number_at(middle) <= limit then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local function forks_up_to(found, seq)
  return up_to(seq, found.forks, function(index) return fork_at(index).first end)
end

-- The part of a branch that ends with an entry, and which elements of the list of turns begin in it.
local function segment_to(found, last)
  local count = forks_up_to(found, last)
  local segment = { first = 1, parent = 0, number = 0, offset = 0 }
  if count > 0 then
    segment = fork_at(count - 1)
    segment.forked = true
  end
  segment.turns = (count < found.forks and fork_at(count).offset or found.turns) - segment.offset
  return segment
end

local function turn_in(segment, index)
  return tonumber(redis.call('LINDEX', turns, segment.offset + index))
end

-- The last turn of the branch to an entry: its number, and where it begins.
local function turn_at(found, at)
  while at > 0 do
    local segment = segment_to(found, at)
    local count = up_to(at, segment.turns, function(index) return turn_in(segment, index) end)
    if count > 0 then
      return segment.number + count, turn_in(segment, count - 1)
    end
    at = segment.parent
  end
  return 0, 1
end

-- Where the turn of this number begins on the branch to an entry.
local function turn_start(found, number, at)
  while at > 0 do
    local segment = segment_to(found, at)
    if number > segment.number then
      return turn_in(segment, number - segment.number - 1) or 1
    end
    at = segment.parent
  end
  return 1
end

-- A field of an entry, if it has it.
local function field_of(seq, name)
  local entry = redis.call('XRANGE', log, text(seq), text(seq))[1]
  local fields = entry and entry[2] or {}
  for n = 1, #fields, 2 do
    if fields[n] == name then
      return fields[n + 1]
    end
  end
end
