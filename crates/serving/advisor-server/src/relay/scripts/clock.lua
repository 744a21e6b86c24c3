-- Returns the milliseconds of the server's clock, so that clocks of processes do not matter.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
