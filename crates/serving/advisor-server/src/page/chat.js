// One conversation: asks, shows the answers, and joins a turn that runs.

import { Answer } from "./answer/answer.js";
import { Approval } from "./approval.js";
import { api, conversationPath } from "./api.js";
import { $, announce, save, showEnd } from "./dom.js";
import { MOST_TRIES, Reading, follow, persist, submit, wait } from "./events.js";
import { eventsOf, lines, offerEarlier, read, readIfStored, readWaiting, update } from "./history.js";
import { newId } from "./ids.js";
import { UserMessage } from "./user_message.js";

const messages = $("messages");

/** The tries after which a request is sent again every four seconds. */
const SLOWLY = 4;

/** How long a message waits for a stop before it. */
const STOP_TIMEOUT_MS = 10_000;

export class Chat {
  /** The id of the conversation, if it has one yet. */
  id = null;
  /** Resolves when the conversation is shown. */
  opening = Promise.resolve();
  /** Called with the id of the conversation that is shown, and after each turn. */
  onName = () => {};
  onTurn = () => {};
  /** Called with the id of a turn that begins, and to inspect an earlier one. */
  onBegin = () => {};
  onInspect = () => {};
  /** Called to edit a message: with its text, and a function that sends another one. That one is valid until `onEditEnd`. */
  onEdit = () => {};
  onEditEnd = () => {};
  /** The turn that is read, if one is. It ends when another conversation is opened. */
  #reading = null;
  /** Aborted when a turn begins or a conversation is opened: then the answers to earlier requests come too late. */
  #now = new AbortController();
  /** Resolves when all stops have ended. A stop also stops a later turn that reaches the server before it. */
  #stopped = Promise.resolve();
  #approval = new Approval(messages, (decisions, hadFocus) => this.#decide(decisions, hadFocus));

  get isBusy() {
    return this.#reading !== null;
  }

  /** The first message of the user that is shown, on one line. */
  get question() {
    return messages.querySelector("article.user .plain")?.textContent.trim().split("\n", 1)[0];
  }

  async ask(text, replaces) {
    const message = new UserMessage(messages, text);
    const turn = newId();
    this.#name(this.id ?? newId());
    this.#offer(message, turn);
    showEnd();
    const answer = await this.#submit({ message: text, conversation: this.id, turn, replaces });
    if (answer) await this.#findCalls(turn, answer);
  }

  async #decide(decisions, hadFocus) {
    const turn = newId();
    const answering = this.#submit({ conversation: this.id, turn, decisions });
    if (hadFocus) $("stop").focus();
    const answer = await answering;
    // The stored messages have the results of the calls, which the answer does not show.
    if (answer) await this.#showAfter(turn, answer);
  }

  #submit(question) {
    return this.#read(question.turn, async (reading) => {
      await Promise.race([this.#stopped, reading.aborted]);
      const response = await submit(question, reading);
      this.onBegin(question.turn);
      return response;
    });
  }

  /** Asks for decisions about calls that wait after a turn. */
  async #findCalls(turn, answer) {
    if (!this.#approval.mayWait) return;
    await this.#readAfter(turn, readWaiting, ({ waiting, running }) =>
      running ? this.#showAfter(null, answer) : this.#approval.offer(waiting),
    );
  }

  /** Shows what is stored after a turn, and the error of its answer. */
  #showAfter(turn, { error }) {
    this.opening = this.#readAfter(turn, read, (stored) => this.#show(stored, error));
    return this.opening;
  }

  /**
   * Reads the conversation after a turn, and shows it unless something else has begun. The server may end the turn later
   * than the page. If it does not end it, the page joins it again.
   */
  async #readAfter(turn, request, showRead) {
    const { id } = this;
    const { signal } = this.#now;
    try {
      for (let tries = 0; ; tries++) {
        const stored = await persist(() => request(id, { signal }), { signal });
        if (signal.aborted) return;
        if (stored.running !== turn || tries === SLOWLY || turn === null) return showRead(stored);
        await wait(tries, signal);
      }
    } catch (error) {
      if (signal.aborted) return;
      // Nothing is stored.
      if (error.status === 404) return this.#approval.clear();
      this.#approval.fail(error, () => {
        this.#approval.hide();
        messages.focus({ preventScroll: true });
        this.#readAfter(turn, request, showRead);
      });
    }
  }

  /** Stops the turn. If the turn has not begun, or the stop fails, the page also gives up reading. */
  stop() {
    const reading = this.#reading;
    const stopped = api(conversationPath(this.id, "/stop"), { method: "POST" }).catch(() => reading.abort());
    const timeout = new Promise((done) => setTimeout(done, STOP_TIMEOUT_MS));
    this.#stopped = Promise.all([this.#stopped, Promise.race([stopped, timeout])]);
    if (!reading.hasBegun) reading.abort();
  }

  /** Shows a stored conversation, or an empty one, and joins its running turn. */
  open(id) {
    this.#reading?.abort();
    this.#turn(null);
    this.#approval.clear();
    messages.replaceChildren();
    this.#stopped = Promise.resolve();
    const signal = this.#begin();
    this.#name(id);
    messages.ariaBusy = String(id !== null);
    this.opening = id ? this.#open(id, signal) : Promise.resolve();
    return this.opening;
  }

  async #open(id, signal) {
    const stored = await read(id, { signal }).catch((error) => ({ error }));
    if (signal.aborted) return;
    this.#turn(null);
    if (!stored.error) this.#show(stored);
    // A conversation may not exist yet.
    else if (stored.error.status !== 404) this.#fail(stored.error);
  }

  /** Shows what is stored and an error behind it, and joins the running turn or asks about calls that wait. */
  #show({ messages: stored, before, running, waiting }, error) {
    this.onEditEnd();
    // The running turn shows its own answer.
    const own = stored.filter(({ turn, role }) => turn !== running || role === "user");
    const offer = (message, turn) => this.#offer(message, turn);
    if (!update(messages, own, offer)) offerEarlier(messages, this.id, before, offer);
    if (error) new Answer(messages).repeat(error);
    const turn = running ?? own.at(-1)?.turn;
    if (turn) (running ? this.onBegin : this.onInspect)(turn);
    if (!running) return this.#approval.offer(waiting);
    this.#join(running, own.some((message) => message.turn === running));
  }

  async #join(turn, isStored) {
    const answer = await this.#read(turn, () => null);
    if (!answer) return;
    // Its question may not be stored yet, and the results of calls that it decides are not in its answer.
    await (isStored ? this.#findCalls(turn, answer) : this.#showAfter(turn, answer));
  }

  /** Makes answers to earlier requests too late. Returns the signal after which those to later ones are. */
  #begin() {
    this.#now.abort();
    this.#now = new AbortController();
    this.onEditEnd();
    return this.#now.signal;
  }

  /** Saves the messages as a file, one a line. */
  async export() {
    try {
      save("conversation.ndjson", await lines(this.id));
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Deletes the conversation. Returns whether it is gone. */
  async delete() {
    const { id } = this;
    try {
      await api(conversationPath(id), { method: "DELETE" });
      return true;
    } catch (error) {
      if (this.id === id) this.#fail(error);
      return false;
    }
  }

  /**
   * Shows the answer of a turn. `begin` may ask for it; without a response, the turn is joined. Returns the answer, unless
   * another conversation is open by now.
   */
  async #read(turn, begin) {
    const { id } = this;
    const answer = new Answer(messages);
    const reading = new Reading(answer);
    this.#begin();
    // A decision or a message in its place answers the calls, unless the turn fails.
    this.#approval.hide();
    this.#turn(reading);
    announce("");
    try {
      const response = await begin(reading);
      reading.hasBegun = true;
      if (!(await follow(id, turn, response, reading))) await this.#recover(id, turn, answer, reading);
      if (reading.signal.aborted) answer.take({ type: "stopped" });
    } catch (error) {
      const isStopped = reading.signal.aborted || error.code === "cancelled";
      answer.take(isStopped ? { type: "stopped" } : { type: "error", error: error.message });
    }
    answer.end();
    if (this.#reading !== reading) return null;
    this.#turn(null);
    if (answer.hasOpenCalls) this.#approval.mayWait = true;
    else if (!answer.hasFailed) this.#approval.clear();
    announce(answer.words);
    this.onTurn();
    return answer;
  }

  /**
   * Shows what memory has of a turn whose rest the server cannot send. Memory is read again while the turn runs, and after
   * a broken connection.
   */
  async #recover(id, turn, answer, { signal, onBreak, onRest }) {
    const options = { signal, onBreak, most: MOST_TRIES };
    for (;;) {
      const { messages: stored, running } = await persist(() => readIfStored(id, { signal }), options);
      const isRunning = running === turn;
      const own = stored.filter((message) => message.turn === turn && message.role !== "user");
      if (!own.length && !isRunning) throw new Error("the connection was lost, and the server does not have the rest of this answer");
      answer.clear();
      const events = own.flatMap((message, count) => eventsOf(message, count));
      events.filter(({ type }) => type !== "interrupted" || !isRunning).forEach((event) => answer.take(event));
      if (!isRunning || signal.aborted) break;
      onRest();
      await wait(SLOWLY, signal);
    }
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
    messages.ariaBusy = String(this.isBusy);
    const { activeElement: focused } = document;
    $("send").hidden = this.isBusy;
    $("stop").hidden = !this.isBusy;
    // A hidden button loses the focus.
    if (focused === $("send") && this.isBusy) $("stop").focus();
    if (focused === $("stop") && !this.isBusy) $("text").focus();
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
