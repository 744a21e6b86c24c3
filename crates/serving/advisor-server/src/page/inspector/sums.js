// What the events of a journal add up to.

/** Returns names and values: times and counts. */
export const sums = (events) => {
  const times = events.filter(({ at }) => at !== null);
  const asked = times.find(({ word }) => word === "model.ask");
  const token = times.find(({ word }) => word === "model.first_chunk");
  const count = (wanted) => events.filter(({ word }) => word === wanted).length;
  return [
    ["First token", asked && token && milliseconds(token.at - asked.at)],
    ["In all", times.length > 0 && milliseconds(times.at(-1).at - times[0].at)],
    ["Model calls", count("model.ask")],
    ["Tool runs", count("tool.start")],
    ["Tokens in", tokens(events, "input_tokens")],
    ["Tokens out", tokens(events, "output_tokens")],
  ].filter(([, value]) => value);
};

const tokens = (events, name) =>
  events.reduce((sum, { word, fields }) => sum + ((word === "usage" && fields[name]) || 0), 0);

export const milliseconds = (count) => (count < 10_000 ? `${count} ms` : `${(count / 1000).toFixed(1)} s`);
