// The events of a journal as a table: a row for each event in its order, and a column for each lane.

import { element } from "../dom.js";
import { describer } from "./words.js";

const COLOURS = 6;
const BEGIN = ["advisor.enter", "model.ask", "tool.start", "turn.start"];
const END = ["advisor.completed", "advisor.drop", "model.end", "model.drop", "tool.end", "turn.completed", "turn.failed"];
/** The events in which the order shows. */
const MARKS = ["stored", "tool.start"];

/** The most rows and lanes of the table: a saved file may have any number of them. */
const MOST_EVENTS = 5_000;
const MOST_LANES = 24;
const OTHERS = "others";

/** Returns the table, and a note if it does not show everything. */
export const timeline = (events) => {
  const all = [...new Set(events.map(({ lane }) => lane))];
  const lanes = all.length > MOST_LANES ? [...all.slice(0, MOST_LANES - 1), OTHERS] : all;
  const shown = events.slice(0, MOST_EVENTS);
  const notes = [
    [shown.length < events.length, `These are the first ${shown.length} of ${events.length} events.`],
    [lanes.length < all.length, `The last column has ${all.length - lanes.length + 1} lanes.`],
  ].flatMap(([holds, text]) => (holds ? [element("p", "note", text)] : []));
  return [...notes, table(shown, lanes)];
};

const table = (events, lanes) => {
  const made = element("table", "timeline");
  const head = element("tr");
  head.append(heading("ms"), ...lanes.map(laneHeading), heading("event"));
  made.append(head);
  /** The number of works that go on, by lane. */
  const open = new Map(lanes.map((lane) => [lane, 0]));
  const describe = describer();
  for (const event of events) {
    const own = open.has(event.lane) ? event.lane : OTHERS;
    const before = new Map(open);
    open.set(own, Math.max(0, open.get(own) + change(event)));
    const row = element("tr", MARKS.includes(event.word) ? "mark" : "");
    row.append(element("td", "at", event.at === null ? "" : String(event.at)));
    lanes.forEach((lane, place) => row.append(cell(place, before.get(lane) > 0, open.get(lane) > 0, own === lane)));
    row.append(element("td", "what", describe(event)));
    made.append(row);
  }
  return made;
};

const heading = (text) => Object.assign(element("th", "", text), { scope: "col" });

const laneHeading = (lane, place) => {
  const made = heading(lane);
  made.className = `lane-name lane-${place % COLOURS}`;
  return made;
};

/** Returns how many more works go on after an event. */
const change = ({ word }) => (BEGIN.includes(word) ? 1 : END.includes(word) ? -1 : 0);

const cell = (place, wasOn, isOn, isHere) => {
  const classes = [[wasOn, "from"], [isOn, "on"], [isHere, "here"]].flatMap(([holds, name]) => (holds ? [name] : []));
  return element("td", ["lane", `lane-${place % COLOURS}`, ...classes].join(" "));
};
