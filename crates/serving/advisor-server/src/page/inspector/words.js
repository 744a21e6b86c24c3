// The events of a journal in words.

import { milliseconds } from "./sums.js";

/** Returns a function that describes each event, in the order of the events. */
export const describer = () => {
  const asked = new Map();
  return (event) => {
    if (event.word === "model.ask") asked.set(event.rest, event.at);
    return describe(event, asked);
  };
};

const describe = ({ word, rest, lane, at, fields }, asked) => {
  const round = rest.match(/r(\d+)$/)?.[1];
  switch (word) {
    case "turn.start": return "the turn begins";
    case "turn.completed": return "the caller sees the end of the turn";
    case "advisor.enter": return `${lane} is asked`;
    case "advisor.first_chunk": return `${lane}: first chunk of round ${round}`;
    case "advisor.completed": return `${lane} has finished with round ${round}`;
    case "advisor.drop": return `${lane} stops`;
    case "model.ask": return `model is asked for round ${round}`;
    case "model.first_chunk": return `model: first chunk${after(at, asked.get(rest))}`;
    case "model.end": return `model has ended round ${round}`;
    case "model.drop": return `model stops in round ${round}`;
    case "usage": return `tokens of round ${round}: ${fields.input_tokens ?? "?"} in, ${fields.output_tokens ?? "?"} out`;
    case "stored": return `memory has stored: ${rest}`;
    case "journal.cut": return "later events are not recorded";
    case "tool.start": return `${fields.name ?? "tool"} starts (${rest})`;
    case "tool.end": return `${fields.name ?? "tool"} ${fields.is_error ? "fails" : "ends"} (${rest})`;
    default: return [word, rest, Object.keys(fields).length ? JSON.stringify(fields) : ""].filter(Boolean).join(" ");
  }
};

const after = (at, asked) => (at === null || typeof asked !== "number" ? "" : ` after ${milliseconds(at - asked)}`);
