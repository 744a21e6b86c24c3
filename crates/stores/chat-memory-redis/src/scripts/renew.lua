-- Changes how long the conversation is held from now on. ARGV: the fence, and for how many microseconds.
if not held.turn or held.fence ~= tonumber(ARGV[1]) then
  return { 'fenced' }
end
hold(held.fence, held.turn, time + tonumber(ARGV[2]))
return { 'renewed' }
