// The events of a turn, also over a connection that breaks.

import { api, conversationPath } from "./api.js";

const MOST_TRIES = 20;

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Reads events until the end of the turn. Returns whether it was reached. */
const read = async (response, turn, take) => {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return false;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const lines = event.split("\n");
      const field = (name) => lines.find((line) => line.startsWith(name + ": "))?.slice(name.length + 2);
      turn.last = field("id") ?? turn.last;
      const data = field("data");
      if (data === "[DONE]") return true;
      if (data) take(JSON.parse(data));
    }
  }
};

/** Joins a turn behind the last event that was read; the running one without a turn. Returns null if it cannot. */
export const join = (conversation, { id, last } = {}, signal) => {
  const headers = { ...(id && { "x-turn-id": id }), ...(last && { "last-event-id": last }) };
  return api(conversationPath(conversation, "/stream?view=page"), { headers, signal }).catch(() => null);
};

/** Reads a turn to its end or until `signal`, and joins it again after a broken connection. */
export const follow = async (conversation, response, take, signal) => {
  const turn = { id: response.headers.get("x-turn-id"), last: null };
  for (let tries = 0; ; tries++) {
    try {
      if (response && (response.status === 204 || (await read(response, turn, take)))) return;
    } catch {
      // The connection broke.
    }
    if (signal.aborted) return;
    if (tries === MOST_TRIES) throw new Error("the connection is broken");
    await wait(Math.min(250 * 2 ** tries, 4000));
    response = await join(conversation, turn, signal);
  }
};
