-- Reads a range of the log, whatever the branches. ARGV: after which entry, and up to which. With it come the forks
-- in it: the entries that do not follow the one before them, each with what it follows.
local after, last = tonumber(ARGV[1]), tonumber(ARGV[2])
local found, problem = conversation()
if problem then
  return { problem }
elseif not found then
  return { 'none' }
end
last = math.min(last, found.version)
local parted, entries = {}, {}
if after < last then
  for index = forks_up_to(found, after), forks_up_to(found, last) - 1 do
    local fork = fork_at(index)
    parted[#parted + 1] = { fork.first, fork.parent }
  end
  entries = redis.call('XRANGE', log, text(after + 1), text(last))
end
if damaged then
  return { 'damaged' }
end
return { 'found', last, parted, entries }
