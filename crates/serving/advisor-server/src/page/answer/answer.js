// An answer of the assistant: its reasoning, text, tools and errors, in the order in which they begin.

import { button, copy, element, following } from "../dom.js";
import { Reasoning } from "./reasoning.js";
import { TextBlock } from "./text_block.js";
import { ToolRun } from "./tool_run.js";

export class Answer {
  #body;
  /** The line that says why nothing comes, if there is one. */
  #waiting = null;
  #blocks = new Map();
  #tools = new Map();
  /** The reasoning that streams, if any does. */
  #thinking = null;
  /** Whether the answer has ended before some of its calls. */
  hasOpenCalls = false;
  /** Whether the answer has failed, or was stopped. */
  hasFailed = false;
  /** The element of the answer's error, if it has one. */
  error = null;

  constructor(messages) {
    const article = copy("message");
    article.className = "assistant";
    article.querySelector("h2").textContent = "Assistant";
    this.#body = article.querySelector(".body");
    following(() => messages.append(article));
  }

  take(event) {
    following(() => this.#take(event));
  }

  /** Says why nothing comes, until the next event. */
  wait(text) {
    if (this.#waiting?.textContent === text) return;
    this.#endWaiting();
    this.#waiting = element("p", "note waiting", text);
    following(() => this.#body.append(this.#waiting));
  }

  note(text) {
    this.#endWaiting();
    following(() => this.#body.append(element("p", "note", text)));
  }

  /** Marks the end of the answer. An answer without a text says so: one that is empty, was stopped, or has a picture alone. */
  end() {
    this.#settle();
    this.#endWaiting();
    const state = this.hasFailed ? "stopped" : "open";
    for (const tool of this.#tools.values()) this.hasOpenCalls = tool.leave(state) || this.hasOpenCalls;
    if (!this.#body.hasChildNodes()) this.note("This answer has no text.");
  }

  /** Offers to inspect a turn that goes on with this answer, and has no question. */
  offer(turn, { inspect }) {
    const actions = element("div", "actions");
    actions.append(button("Inspect", () => inspect(turn)));
    following(() => this.#body.append(actions));
  }

  /** Shows the error of another answer, which is not shown any more. A screen reader has said it. */
  repeat(error) {
    error.role = null;
    following(() => this.#body.append(error));
  }

  /** Removes everything that is shown. */
  clear() {
    this.hasFailed = false;
    this.error = null;
    this.#blocks.clear();
    this.#tools.clear();
    this.#thinking = this.#waiting = null;
    this.#body.replaceChildren();
  }

  /** Returns the words of the answer for a screen reader: texts, notes, and names of tools that failed. */
  get words() {
    const copied = this.#body.cloneNode(true);
    for (const bar of copied.querySelectorAll(".code-bar")) bar.remove();
    const parts = copied.querySelectorAll(".text, .note, .tool.failed .what");
    return [...parts].map((part) => part.textContent).join("\n");
  }

  #take(event) {
    this.#endWaiting();
    if (event.type !== "reasoning") this.#settle();
    switch (event.type) {
      case "reasoning": return this.#reasoning(event);
      case "content": return this.#text(event).add(event.content);
      case "rendered": return this.#text(event).render(event);
      case "tool_call_open": return this.#tool(event);
      case "tool_call_arguments": return this.#tools.get(event.id)?.add(event.arguments);
      case "tool_call_start": return this.#tool(event).start(event.args);
      case "tool_call_progress": return this.#tools.get(event.id)?.report(event.progress);
      case "tool_call_end": return this.#tools.get(event.id)?.end(event.result);
      case "stopped": return this.#endEarly("This answer was stopped.");
      case "interrupted": return this.#endEarly("This answer was interrupted.");
      case "restart": return this.#restart(event.round);
      case "error": return this.#tools.get(event.id)?.fail() ?? this.#fail(event.error);
    }
  }

  /** Folds the reasoning once something else follows it. */
  #settle() {
    this.#thinking?.end();
    this.#thinking = null;
  }

  #reasoning({ block, content }) {
    this.#thinking = this.#block(block, () => new Reasoning());
    this.#thinking.add(content);
  }

  #text({ block = "end" }) {
    return this.#block(block, () => new TextBlock());
  }

  #block(id, make) {
    if (!this.#blocks.has(id)) this.#blocks.set(id, this.#append(make()));
    return this.#blocks.get(id);
  }

  /** Returns the run of a call, which is shown from its first event on. */
  #tool({ id, tool, block = `call ${id}` }) {
    if (!this.#tools.has(id)) this.#tools.set(id, this.#block(block, () => new ToolRun(tool)));
    return this.#tools.get(id);
  }

  #endEarly(text) {
    this.hasFailed = true;
    this.note(text);
  }

  #fail(text) {
    this.hasFailed = true;
    this.error = element("p", "error", text);
    this.error.role = "alert";
    this.#body.append(this.error);
  }

  #endWaiting() {
    this.#waiting?.remove();
    this.#waiting = null;
  }

  #append(part) {
    this.#body.append(part.element);
    return part;
  }

  /** Removes the blocks of a round that the model is asked for again. */
  #restart(round) {
    for (const [id, block] of this.#blocks) {
      if (!id.startsWith(`${round}.`)) continue;
      block.element.remove();
      this.#blocks.delete(id);
    }
  }
}
