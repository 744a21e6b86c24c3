-- Takes the conversation. ARGV: the turn, for how many microseconds, in place of which fence or '', and '1' if the turn
-- waits for it. The turns that wait are kept beside the lease: of each its id, since when it waits, and until when it
-- does so without another request.
local turn, duration, in_place_of, waits = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local LASTS, PASSED_FOR, MOST = 3000000, 10000000, 100
local waiting, place = {}, nil
for _, found in ipairs(cjson.decode(redis.call('HGET', lease, 'waiting') or '[]')) do
  if tonumber(found[3]) > time then
    waiting[#waiting + 1] = found
    if found[1] == turn then
      place = #waiting
    end
  end
end
local function keep_waiting()
  if #waiting == 0 then
    redis.call('HDEL', lease, 'waiting')
  else
    redis.call('HSET', lease, 'waiting', cjson.encode(waiting))
  end
end

local takes_over = held.fence and held.fence == in_place_of
local is_held = held.turn and held.until_time > time and not takes_over
local ahead = waiting[1]
if place == 1 or (ahead and takes_over and (held.turn == turn or tonumber(ahead[2]) > time - PASSED_FOR)) then
  ahead = nil
end
if is_held or ahead then
  if waits then
    if place then
      waiting[place][3] = text(time + LASTS)
    elseif #waiting < MOST then
      waiting[#waiting + 1] = { turn, text(time), text(time + LASTS) }
    end
    keep_waiting()
  end
  if is_held then
    return { 'held', held.turn, held.fence, held.until_time - time }
  end
  return { 'held', ahead[1], held.fence or 0, tonumber(ahead[3]) - time }
end
if place then
  table.remove(waiting, place)
end
-- The time, so that it grows even if the key was lost.
local fence = math.max(time, (held.fence or 0) + 1)
hold(fence, turn, time + duration)
keep_waiting()
return { 'given', fence }
