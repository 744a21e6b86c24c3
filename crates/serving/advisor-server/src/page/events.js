// The events of a turn, also over a connection that breaks.

import { api, conversationPath } from "./api.js";

/** How often a request is sent again if its failure would end an answer. */
export const MOST_TRIES = 20;

/** How often a request is sent again if a person can repeat it. */
const FEW_TRIES = 4;

/** A turn that is read. */
export class Reading {
  /** Whether the server has answered. */
  hasBegun = false;
  #controller = new AbortController();
  #answer;

  constructor(answer) {
    this.#answer = answer;
  }

  signal = this.#controller.signal;
  /** Resolves when the page gives up reading. */
  aborted = new Promise((done) => this.signal.addEventListener("abort", done));
  take = (event) => this.#answer.take(event);
  onBreak = () => this.#answer.wait("There is no connection. Trying again…");
  onRest = () => this.#answer.wait("The answer goes on, and comes when it is complete.");

  abort() {
    this.#controller.abort();
  }
}

/** Waits before another try: for a while, until the network is back, or until `signal`. */
export const wait = (tries, signal) =>
  new Promise((done) => {
    setTimeout(done, Math.min(250 * 2 ** tries, 4000));
    addEventListener("online", done, { once: true });
    signal.addEventListener("abort", done, { once: true });
  });

/** The codes of a server that cannot answer now. */
const PASSING = ["stopping", "relay_unavailable"];

/** Whether a request may succeed later: the connection is broken, or a proxy does not reach the server. */
const isPassing = ({ isBroken, status, code }) =>
  isBroken || (code ? PASSING.includes(code) : [502, 503, 504].includes(status));

/**
 * Sends a request again while its failure may pass: at most `most` times, or until `signal`. `onBreak` is called before
 * each further try.
 */
export const persist = async (request, { signal, most = FEW_TRIES, onBreak = () => {} }) => {
  for (let tries = 0; ; tries++) {
    try {
      return await request();
    } catch (error) {
      if (signal.aborted || tries === most || !isPassing(error)) throw error;
    }
    onBreak();
    await wait(tries, signal);
  }
};

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

/** Reads events until the end of the turn. Returns whether it was reached: the connection may break before it. */
const read = async (response, turn, take) => {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(() => ({ done: true }));
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
  } finally {
    reader.cancel().catch(() => {});
  }
};

/** Joins a turn behind the last event that was read. */
const join = (conversation, { id, last }, signal) => {
  const headers = { "x-turn-id": id, ...(last && { "last-event-id": last }) };
  return api(conversationPath(conversation, "/stream?view=page"), { headers, signal });
};

/**
 * Reads a turn to its end or until `signal`: first the response, if there is one. Without one, or after a broken
 * connection, it joins the turn. Returns false if the server cannot send the rest: it does not know the turn any more, or
 * has not kept all of it.
 */
export const follow = async (conversation, id, response, { take, signal, onBreak }) => {
  const turn = { id, last: null };
  for (let tries = 0; ; tries++) {
    const { last } = turn;
    try {
      response ??= await join(conversation, turn, signal);
      if (response.status === 204) return false;
      if (await read(response, turn, take)) return true;
    } catch (error) {
      if (!signal.aborted && !isPassing(error)) {
        if (error.status === 404) return false;
        throw error;
      }
    }
    if (signal.aborted) return true;
    if (turn.last !== last) tries = 0;
    if (tries === MOST_TRIES) throw new Error("the connection is broken");
    response = null;
    onBreak();
    await wait(tries, signal);
  }
};
