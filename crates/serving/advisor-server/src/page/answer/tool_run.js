// One call of a tool: its name, its arguments as they form, its progress and its result.

import { copy } from "../dom.js";

const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const line = (value) => (typeof value === "string" ? value : JSON.stringify(value));

export class ToolRun {
  #tool;
  #hasFailed = false;
  #hasEnded = false;

  constructor(tool) {
    this.#tool = tool;
    this.element = copy("tool");
    this.#part(".what").textContent = `Calling tool: ${tool}…`;
    this.#state("preparing");
  }

  /** Adds a piece of the arguments, which the model still writes. */
  add(piece) {
    this.#part(".preview").append(piece);
    this.#part(".args").append(piece);
  }

  /** Marks the start of the tool. */
  start(args) {
    this.#part(".preview").textContent = line(args);
    this.#part(".args").textContent = pretty(args);
    this.#state("running");
  }

  report(progress) {
    this.#part(".progress").textContent = line(progress);
  }

  fail() {
    this.#hasFailed = true;
    this.element.classList.add("failed");
    return this;
  }

  end(result) {
    this.#part(".what").textContent = this.#hasFailed ? `Tool failed: ${this.#tool}` : `Used tool: ${this.#tool}`;
    this.#part(".result").textContent = pretty(result);
    this.#finish(this.#hasFailed ? "failed" : "done");
  }

  /** Marks a call that is open, or was stopped, if its answer has ended before it. Returns whether it is one. */
  leave(state) {
    if (this.#hasEnded) return false;
    this.#part(".what").textContent = `Tool without a result: ${this.#tool}`;
    this.#part(".result").textContent = "none";
    this.#finish(state);
    return true;
  }

  #finish(state) {
    this.#hasEnded = true;
    this.element.dataset.ended = "";
    this.#part(".progress").textContent = "";
    this.#state(state);
  }

  #state(state) {
    this.element.dataset.state = this.#part(".state").textContent = state;
  }

  #part(selector) {
    return this.element.querySelector(selector);
  }
}
