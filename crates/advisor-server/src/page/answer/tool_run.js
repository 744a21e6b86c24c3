// One call of a tool: its name, its arguments and its result.

import { copy } from "../dom.js";

const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

export class ToolRun {
  #tool;
  #summary;
  #hasFailed = false;

  constructor({ tool, args }) {
    this.#tool = tool;
    this.element = copy("tool");
    this.#summary = this.element.querySelector("summary");
    this.#summary.textContent = `Calling tool: ${tool}…`;
    this.element.querySelector(".args").textContent = pretty(args);
  }

  fail() {
    this.#hasFailed = true;
    this.element.classList.add("failed");
    return this;
  }

  end(result) {
    this.#summary.textContent = this.#hasFailed ? `Tool failed: ${this.#tool}` : `Used tool: ${this.#tool}`;
    this.element.querySelector(".result").textContent = pretty(result);
    this.element.dataset.ended = "";
  }
}
