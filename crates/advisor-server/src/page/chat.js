// One conversation: asks, shows the answers, and joins a turn that runs.

import { Answer } from "./answer/answer.js";
import { api, conversationPath } from "./api.js";
import { $, announce, save, showEnd } from "./dom.js";
import { follow, join, submit } from "./events.js";
import { eventsOf, offerEarlier, read, show } from "./history.js";
import { newId } from "./ids.js";
import { UserMessage } from "./user_message.js";

const messages = $("messages");

/** A turn that is read. */
class Reading {
  /** Whether the server has answered. */
  hasBegun = false;
  #controller = new AbortController();
  #answer;

  constructor(answer) {
    this.#answer = answer;
  }

  signal = this.#controller.signal;
  take = (event) => this.#answer.take(event);
  onBreak = () => this.#answer.wait("There is no connection. Trying again…");

  abort() {
    this.#controller.abort();
  }
}

export class Chat {
  /** The id of the conversation, if it has one yet. */
  id = null;
  /** Called with the id of the conversation that is shown, and after each turn. */
  onName = () => {};
  onTurn = () => {};
  /** Called with the id of a turn that begins, and to inspect an earlier one. */
  onBegin = () => {};
  onInspect = () => {};
  /** Called to edit a message: with its text, and a function that sends another one. */
  onEdit = () => {};
  /** The turn that is read, if one is. It ends when another conversation is opened. */
  #reading = null;
  /** The number of the last request to open a conversation. Answers to earlier ones are too late. */
  #opened = 0;

  get isBusy() {
    return this.#reading !== null;
  }

  ask(text, replaces) {
    const message = new UserMessage(messages, text);
    const turn = newId();
    this.#name(this.id ?? newId());
    this.#offer(message, turn);
    showEnd();
    const question = { message: text, conversation: this.id, turn, replaces };
    return this.#read(turn, async (reading) => {
      const response = await submit(question, reading);
      this.onBegin(turn);
      return response;
    });
  }

  /** Stops the turn. Before the server has answered, or if it cannot be reached, it gives up reading, too. */
  async stop() {
    const reading = this.#reading;
    if (!reading.hasBegun) reading.abort();
    await api(conversationPath(this.id, "/stop"), { method: "POST" }).catch(() => reading.abort());
  }

  /** Shows a stored conversation, or an empty one, and joins its running turn. */
  async open(id) {
    this.#reading?.abort();
    this.#turn(null);
    messages.replaceChildren();
    const opened = ++this.#opened;
    this.#name(id);
    if (!id) return;
    const { messages: stored, before, running, error } = await read(id).catch((error) => ({ messages: [], error }));
    const live = await join(id);
    if (this.#opened !== opened) return live?.body?.cancel();
    // A conversation may not exist yet.
    if (error && error.status !== 404) this.#fail(error);
    const runs = live?.status === 200;
    // The running turn shows its own answer.
    const end = runs ? stored.findLastIndex((message) => message.role === "user") + 1 : stored.length;
    const offer = (message, turn) => this.#offer(message, turn);
    show(messages, stored.slice(0, end), offer);
    offerEarlier(messages, id, before, offer);
    const turn = stored.findLast((message) => message.role === "user")?.turn;
    if (turn) (runs ? this.onBegin : this.onInspect)(turn);
    if (runs) this.#read(running ?? turn, async () => live);
  }

  /** Saves the messages as a file, one a line. */
  async export() {
    try {
      const response = await api(conversationPath(this.id, "/export?view=page"));
      save("conversation.ndjson", await response.blob());
    } catch (error) {
      this.#fail(error);
    }
  }

  async delete() {
    await api(conversationPath(this.id), { method: "DELETE" });
  }

  /** Shows the answer of a turn, which `begin` asks for. */
  async #read(turn, begin) {
    const answer = new Answer(messages);
    const reading = new Reading(answer);
    this.#turn(reading);
    announce("");
    try {
      const response = await begin(reading);
      reading.hasBegun = true;
      if (!(await follow(this.id, turn, response, reading))) await this.#recover(turn, answer);
      if (reading.signal.aborted) answer.note("This answer was stopped.");
    } catch (error) {
      if (reading.signal.aborted) answer.note("This answer was stopped.");
      else answer.take({ type: "error", error: error.message });
    }
    answer.end();
    if (this.#reading !== reading) return;
    this.#turn(null);
    announce(answer.words);
    this.onTurn();
  }

  /** Shows what memory has of a turn that the server does not know any more, since it was started again. */
  async #recover(turn, answer) {
    const { messages: stored } = await read(this.id).catch(() => ({ messages: [] }));
    const own = stored.filter((message) => message.turn === turn && message.role !== "user");
    if (!own.length) throw new Error("the connection was lost, and the server does not have the rest of this answer");
    answer.clear();
    own.forEach((message, count) => eventsOf(message, count).forEach((event) => answer.take(event)));
    answer.note("The connection was lost. This is what the server has of the answer.");
  }

  /** Shows an error in the place of messages that cannot be read. */
  #fail(error) {
    const answer = new Answer(messages);
    answer.take({ type: "error", error: error.message });
    answer.end();
  }

  #turn(reading) {
    this.#reading = reading;
    $("send").hidden = this.isBusy;
    $("stop").hidden = !this.isBusy;
    messages.ariaBusy = String(this.isBusy);
  }

  #name(id) {
    this.id = id;
    this.onName(id);
  }

  #offer(message, turn) {
    message.offer(turn, {
      isBusy: () => this.isBusy,
      edit: (text, replace) => this.onEdit(text, replace),
      ask: (text, replaced) => this.ask(text, replaced),
      inspect: (inspected) => this.onInspect(inspected, true),
    });
  }
}
