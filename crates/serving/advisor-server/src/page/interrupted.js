// The mark that memory adds for the model to an answer that was interrupted. A reader sees a note in its place.

/** The default text of the mark. */
const MARK = "[interrupted]";

/** Returns the parts of a stored answer without the mark, and whether they had it. */
export const unmarked = (parts) => {
  const last = parts.at(-1);
  if (last?.type !== "text" || !last.text.endsWith(MARK)) return { parts, isInterrupted: false };
  const text = before(last.text);
  const rest = text ? [{ ...last, text, nodes: withoutMark(last.nodes) }] : [];
  return { parts: [...parts.slice(0, -1), ...rest], isInterrupted: true };
};

const before = (text) => text.slice(0, -MARK.length).trimEnd();

/** Returns nodes without the mark, which is the end of their text. */
const withoutMark = (nodes) => {
  const last = nodes.at(-1);
  if (last === undefined) return nodes;
  const others = nodes.slice(0, -1);
  if (typeof last !== "string") return [...others, { ...last, children: withoutMark(last.children ?? []) }];
  return last.trimEnd().endsWith(MARK) ? [...others, before(last.trimEnd())] : nodes;
};
