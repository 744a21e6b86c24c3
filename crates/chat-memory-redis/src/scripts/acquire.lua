-- Takes the conversation. ARGV: the turn, for how many microseconds, in place of which fence or ''.
local turn, duration, in_place_of = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if held.turn and held.until_time > time and held.fence ~= in_place_of then
  return { 'held', held.turn, held.fence, held.until_time - time }
end
-- The time, so that it grows even if the key was lost.
local fence = math.max(time, (held.fence or 0) + 1)
hold(fence, turn, time + duration)
return { 'given', fence }
