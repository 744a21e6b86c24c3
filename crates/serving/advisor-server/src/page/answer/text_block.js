// A block of text: the elements of its finished Markdown, and behind them the text that still streams.

import { element } from "../dom.js";
import { build } from "./markdown.js";

export class TextBlock {
  #elements = element("div", "markdown");
  #live = element("div", "live");
  /** The beginning of the text that streams. */
  #begin = "";

  constructor() {
    this.element = element("div", "text");
    this.element.append(this.#elements, this.#live);
  }

  add(piece) {
    this.#live.append(piece);
    if (this.#begin.length < 20) this.#begin += piece;
    this.#live.classList.toggle("in-code", /^\s*(```|~~~)/.test(this.#begin));
  }

  /** Replaces the elements behind the first `keep` ones, and the text that streams. */
  render({ keep, nodes, rest }) {
    while (this.#elements.childNodes.length > keep) this.#elements.lastChild.remove();
    this.#elements.append(...nodes.map(build));
    this.#live.textContent = this.#begin = "";
    this.add(rest);
  }
}
