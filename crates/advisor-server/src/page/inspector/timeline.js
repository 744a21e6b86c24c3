// The events of a journal as a table: a row for each event in its order, and a column for each lane.

import { element } from "../dom.js";
import { describer } from "./words.js";

const COLOURS = 6;
const BEGIN = ["advisor.enter", "model.ask", "tool.start", "turn.start"];
const END = ["advisor.completed", "advisor.drop", "model.end", "model.drop", "tool.end", "turn.completed", "turn.failed"];
/** The events in which the order shows. */
const MARKS = ["stored", "tool.start"];

/** Builds the table. */
export const timeline = (events) => {
  const lanes = [...new Set(events.map(({ lane }) => lane))];
  const table = element("table", "timeline");
  const head = element("tr");
  head.append(heading("ms"), ...lanes.map(laneHeading), heading("event"));
  table.append(head);
  /** The number of works that go on, by lane. */
  const open = new Map(lanes.map((lane) => [lane, 0]));
  const describe = describer();
  for (const event of events) {
    const before = new Map(open);
    open.set(event.lane, Math.max(0, open.get(event.lane) + change(event)));
    const row = element("tr", MARKS.includes(event.word) ? "mark" : "");
    row.append(element("td", "at", event.at === null ? "" : String(event.at)));
    lanes.forEach((lane, place) => row.append(cell(place, before.get(lane) > 0, open.get(lane) > 0, event.lane === lane)));
    row.append(element("td", "what", describe(event)));
    table.append(row);
  }
  return table;
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
