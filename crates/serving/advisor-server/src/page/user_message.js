// A message of the user. It can be edited, or answered again.

import { $, button, copy, element, following } from "./dom.js";

export class UserMessage {
  #text;
  #article;

  constructor(messages, text) {
    this.#text = text;
    this.#article = copy("message");
    this.#article.className = "user";
    this.#article.querySelector("h2").textContent = "You";
    // The server sends no media, so one that is a picture alone has no text.
    const shown = text ? element("div", "plain", text) : element("p", "note", "This message has no text.");
    this.#article.querySelector(".body").append(shown);
    following(() => messages.append(this.#article));
  }

  /** Offers to replace the turn of this message. `edit` gets the text, and a function that sends another one. */
  offer(turn, { isBusy, edit, ask, inspect }) {
    this.#article.dataset.turn = turn;
    const replace = (text) => {
      while (this.#article.nextElementSibling) this.#article.nextElementSibling.remove();
      this.#article.remove();
      // The button that had the focus is gone.
      $("messages").focus({ preventScroll: true });
      ask(text, turn);
    };
    const actions = element("div", "actions");
    actions.append(
      button("Edit", () => isBusy() || edit(this.#text, replace)),
      button("Answer again", () => isBusy() || replace(this.#text)),
      button("Inspect", () => inspect(turn)),
    );
    this.#article.append(actions);
  }
}
