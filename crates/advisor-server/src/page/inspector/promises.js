// Checks the order that the chain promises, in the events of a journal.

/** Returns the promises that the events can show, each with whether it was kept. */
export const promises = (events) => {
  const writes = events.map(({ word, rest }) => (word === "stored" ? rest : ""));
  if (!writes.some(Boolean)) return [];
  const found = [];
  const tools = events.flatMap(({ word, rest }, place) => (word === "tool.start" ? [{ id: rest, place }] : []));
  if (tools.length) {
    const isKept = tools.every(({ id, place }) => writes.slice(0, place).some((write) => callsOf(write).includes(id)));
    found.push({ text: "Memory had each answer before a tool of it started.", isKept });
  }
  const complete = events.findLastIndex(({ word }) => ["turn.completed", "advisor.completed"].includes(word));
  if (complete >= 0) {
    const end = writes.findLastIndex((write) => /(^| )end$/.test(write));
    found.push({ text: "Memory had the end of the turn before the answer was complete.", isKept: end >= 0 && end < complete });
  }
  return found;
};

/** Returns the ids of the calls in the answers of a write, such as `assistant(c1,c2) end`. */
const callsOf = (write) => [...write.matchAll(/assistant\((.*?)\)(?= |$)/g)].flatMap(([, ids]) => ids.split(","));
