// One conversation: asks, shows the answers, and joins a turn that runs.

import { Answer } from "./answer/answer.js";
import { api, conversationPath } from "./api.js";
import { $, save } from "./dom.js";
import { follow, join } from "./events.js";
import { offerEarlier, read, show } from "./history.js";
import { UserMessage } from "./user_message.js";

const messages = $("messages");

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
    return this.#read(async (signal) => {
      const body = { message: text, ...(this.id && { conversation: this.id }), ...(replaces && { replaces }) };
      const headers = { "content-type": "application/json" };
      const options = { method: "POST", headers, body: JSON.stringify(body), signal };
      const response = await api("api/chat?view=page", options);
      this.#name(response.headers.get("x-conversation-id"));
      const turn = response.headers.get("x-turn-id");
      this.#offer(message, turn);
      this.onBegin(turn);
      return response;
    });
  }

  /** Stops the turn. Before the server has answered, it gives up the request. */
  stop() {
    if (this.#reading.hasBegun) api(conversationPath(this.id, "/stop"), { method: "POST" });
    else this.#reading.abort();
  }

  /** Shows a stored conversation, or an empty one, and joins its running turn. */
  async open(id) {
    this.#reading?.abort();
    this.#turn(null);
    messages.replaceChildren();
    const opened = ++this.#opened;
    this.#name(id);
    if (!id) return;
    const { messages: stored, before, error } = await read(id).catch((error) => ({ messages: [], before: null, error }));
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
    if (runs) this.#read(async () => live);
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

  /** Shows the answer that `begin` asks for. */
  async #read(begin) {
    const answer = new Answer(messages);
    const reading = new AbortController();
    this.#turn(reading);
    try {
      const response = await begin(reading.signal);
      reading.hasBegun = true;
      await follow(this.id, response, (event) => answer.take(event), reading.signal);
    } catch (error) {
      answer.take({ type: "error", error: error.message });
    }
    answer.end();
    if (this.#reading !== reading) return;
    this.#turn(null);
    this.onTurn();
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
