// Checks the order that the chain promises, in the events of a journal.

/** Returns the promises that the events can show, each with whether it was kept. */
export const promises = (events) => {
  if (!events.some(({ word }) => word === "stored")) return [];
  const found = [];
  if (events.some(({ word }) => word === "tool.start")) {
    found.push({ text: "Memory had each answer before a tool of it started.", isKept: isEachCallStored(events) });
  }
  const complete = completion(events);
  if (complete >= 0) {
    const isKept = events.slice(0, complete).some(({ word, rest }) => word === "stored" && /(^| )end$/.test(rest));
    found.push({ text: "Memory had the end of the turn before the answer was complete.", isKept });
  }
  return found;
};

const isEachCallStored = (events) => {
  const stored = new Set();
  return events.every(({ word, rest }) => {
    if (word === "stored") callsOf(rest).forEach((id) => stored.add(id));
    return word !== "tool.start" || stored.has(rest);
  });
};

/** Returns the ids of the calls in the answers of a write, such as `assistant(c1,c2) end`. */
const callsOf = (write) => [...write.matchAll(/assistant\((.*?)\)(?= |$)/g)].flatMap(([, ids]) => ids.split(","));

/**
 * Returns the place where the answer of the turn was complete, or -1. It is complete when the outermost advisor has
 * finished: one inside it finishes with each round. A turn that runs or was stopped has no such place.
 */
const completion = (events) => {
  const end = events.findLastIndex(({ word }) => word === "turn.completed");
  if (end >= 0) return end;
  const outermost = events.find(({ word }) => word === "advisor.enter")?.lane;
  const last = events.findLastIndex(({ word, lane }) => word === "advisor.completed" && lane === outermost);
  return events.slice(last + 1).some(({ word }) => word === "model.ask") ? -1 : last;
};
