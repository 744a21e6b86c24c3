// Reads the JSON form of a journal: of a turn of this server, or of a saved file.

const VERSION = 1;

/**
 * Returns the events of a journal. Each has the `word` and the `rest` of its label, its lane, `at`, the milliseconds
 * since the journal began if it has times, and its fields.
 */
export const read = (journal) => {
  if (!Array.isArray(journal?.events)) throw new Error("this is no journal");
  if (!(journal.version <= VERSION)) throw new Error(`the journal has version ${journal.version}, and this page reads ${VERSION}`);
  return journal.events.map(({ label, at_ms, fields }) => {
    const [, word, rest] = String(label).match(/^([^ ]*) ?([^]*)$/);
    return { word, rest, lane: laneOf(word, rest), at: at_ms ?? null, fields: fields ?? {} };
  });
};

/** Returns the lane of an event: an advisor by its name, and the other parts of a turn. */
const laneOf = (word, rest) => {
  if (word.startsWith("advisor.")) return rest.replace(/ r\d+$/, "");
  if (word.startsWith("tool.")) return "tools";
  if (word === "stored") return "store";
  if (/^(model|usage)\b/.test(word)) return "model";
  return /^(turn|round)\./.test(word) ? "caller" : "other";
};
