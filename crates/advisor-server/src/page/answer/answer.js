// An answer of the assistant: its reasoning, text, tools and errors, in the order in which they begin.

import { copy, element, following } from "../dom.js";
import { Reasoning } from "./reasoning.js";
import { TextBlock } from "./text_block.js";
import { ToolRun } from "./tool_run.js";

export class Answer {
  #body;
  #blocks = new Map();
  #tools = new Map();
  /** The reasoning that streams, if any does. */
  #thinking = null;

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

  /** Marks the end of the answer. An answer without a text says so: one that is empty, was stopped, or has a picture alone. */
  end() {
    this.#settle();
    if (!this.#body.hasChildNodes()) following(() => this.#body.append(element("p", "note", "This answer has no text.")));
  }

  #take(event) {
    if (event.type !== "reasoning") this.#settle();
    switch (event.type) {
      case "reasoning": return this.#reasoning(event);
      case "content": return this.#text(event).add(event.content);
      case "rendered": return this.#text(event).render(event);
      case "tool_call_start": return this.#start(event);
      case "tool_call_end": return this.#tools.get(event.id)?.end(event.result);
      case "restart": return this.#restart(event.round);
      case "error": return this.#tools.get(event.id)?.fail() ?? this.#body.append(element("p", "error", event.error));
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

  #start(event) {
    this.#tools.set(event.id, this.#append(new ToolRun(event)));
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
