-- Begins every script about one conversation. Lua's numbers are exact up to 2^53.
local meta, log, turns, batches, lease, void = unpack(KEYS)

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
  local format, version, runs, last_turn, last_from, open =
    unpack(redis.call('HMGET', meta, 'format', 'version', 'turns', 'last_turn', 'last_from', 'open'))
  local listed = redis.call('LLEN', turns)
  redis.call('XLEN', log)
  redis.call('HLEN', batches)
  local parts = redis.call('EXISTS', meta, log, turns, batches)
  if parts == 0 then
    return nil, nil
  elseif format and format ~= FORMAT then
    return nil, 'newer'
  elseif parts < 4 or listed ~= tonumber(runs) then
    return nil, 'damaged'
  end
  return {
    version = tonumber(version), turns = listed,
    last_turn = last_turn, last_from = tonumber(last_from), open = open,
  }, nil
end
