// A block of text, as it streams.

import { element } from "./dom.js";

export class TextBlock {
  #live = element("div", "live");

  constructor() {
    this.element = element("div", "text");
    this.element.append(this.#live);
  }

  add(piece) {
    this.#live.append(piece);
  }
}
