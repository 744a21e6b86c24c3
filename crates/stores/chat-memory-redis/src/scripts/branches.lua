-- All forks of a conversation.
local found, problem = conversation()
if problem then
  return { problem }
elseif not found then
  return { 'none' }
end
local parted = {}
for index = 0, found.forks - 1 do
  local fork = fork_at(index)
  parted[index + 1] = { fork.first, fork.parent }
end
if damaged then
  return { 'damaged' }
end
return { 'found', found.version, parted }
