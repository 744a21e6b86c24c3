// Reasoning of the model: open while it streams, folded once the answer goes on. A reader who folds or unfolds decides.

import { copy } from "../dom.js";

export class Reasoning {
  #text;
  #isTouched = false;

  constructor() {
    this.element = copy("reasoning");
    this.element.open = true;
    this.#text = this.element.querySelector(".thought");
    this.element.querySelector("summary").addEventListener("click", () => (this.#isTouched = true));
  }

  add(piece) {
    this.#text.append(piece);
  }

  end() {
    this.element.querySelector("summary").textContent = "Reasoning";
    if (!this.#isTouched) this.element.open = false;
  }
}
