// The events of a turn, also over a connection that breaks.

import { api, conversationPath } from "./api.js";

const MOST_TRIES = 20;

/** Waits before another try: for a while, until the network is back, or until `signal`. */
const wait = (tries, signal) =>
  new Promise((done) => {
    setTimeout(done, Math.min(250 * 2 ** tries, 4000));
    addEventListener("online", done, { once: true });
    signal.addEventListener("abort", done, { once: true });
  });

const post = (question, signal) => {
  const headers = { "content-type": "application/json" };
  return api("api/chat?view=page", { method: "POST", headers, body: JSON.stringify(question), signal });
};

/**
 * Submits a question, and returns the response. Over a broken connection it is submitted again: it names its turn, so the
 * server answers it once.
 */
export const submit = async (question, { signal, onBreak }) => {
  for (let tries = 0; ; tries++) {
    try {
      return await post(question, signal);
    } catch (error) {
      // A turn that failed before memory had it cannot be replaced.
      if (error.status === 404 && question.replaces) return submit({ ...question, replaces: undefined }, { signal, onBreak });
      if (!error.isBroken || tries === MOST_TRIES) throw error;
    }
    onBreak();
    await wait(tries, signal);
  }
};

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

/**
 * Reads a turn to its end or until `signal`, and joins it again after a broken connection. Returns whether the server knew
 * the turn to its end: one that was started again does not.
 */
export const follow = async (conversation, id, response, { take, signal, onBreak }) => {
  const turn = { id, last: null };
  for (let tries = 0; ; tries++) {
    if (response?.status === 204) return false;
    const { last } = turn;
    // The connection may break.
    if (response && (await read(response, turn, take).catch(() => false))) return true;
    if (signal.aborted) return true;
    if (turn.last !== last) tries = 0;
    if (tries === MOST_TRIES) throw new Error("the connection is broken");
    onBreak();
    await wait(tries, signal);
    response = await join(conversation, turn, signal);
  }
};
