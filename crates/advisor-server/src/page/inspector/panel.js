// The inspector beside the page: what happened in a turn, in which order.

import { api, conversationPath } from "../api.js";
import { $, element, save } from "../dom.js";
import { read } from "./journal.js";
import { promises } from "./promises.js";
import { sums } from "./sums.js";
import { timeline } from "./timeline.js";

/** The time between two looks at a turn that runs. */
const PACE = 300;

export class Panel {
  /** The turn that is shown, as `{ conversation, turn }`, and its journal. */
  #shown = null;
  #journal = null;
  #timer = null;

  get isOpen() {
    return !$("inspector").hidden;
  }

  toggle(isOpen = !this.isOpen) {
    $("inspector").hidden = !isOpen;
    document.body.classList.toggle("inspecting", isOpen);
    $("inspect").ariaExpanded = String(isOpen);
    if (isOpen) this.#load();
    else $("inspect").focus();
  }

  /** Shows a turn, and keeps looking at it until `end`. */
  begin(conversation, turn) {
    this.show(conversation, turn);
    this.#timer = setInterval(() => this.#load(), PACE);
  }

  end() {
    clearInterval(this.#timer);
    this.#load();
  }

  show(conversation, turn) {
    clearInterval(this.#timer);
    this.#shown = turn ? { conversation, turn } : null;
    if (turn) this.#load();
    else this.#say("No turn yet. Ask something, or open a saved journal.");
  }

  /** Shows a saved journal. */
  async open(file) {
    clearInterval(this.#timer);
    this.#shown = null;
    try {
      this.#draw(JSON.parse(await file.text()), file.name);
    } catch (error) {
      this.#say(`${file.name}: ${error.message}`);
    }
  }

  save() {
    save("journal.json", new Blob([JSON.stringify(this.#journal)], { type: "application/json" }));
  }

  async #load() {
    const shown = this.#shown;
    if (!this.isOpen || !shown) return;
    const path = conversationPath(shown.conversation, `/turns/${encodeURIComponent(shown.turn)}/journal`);
    try {
      const journal = await (await api(path)).json();
      if (this.#shown === shown) this.#draw(journal, `Turn ${shown.turn}`);
    } catch (error) {
      if (this.#shown === shown) this.#say(error.message);
    }
  }

  #draw(journal, source) {
    const events = read(journal);
    this.#journal = journal;
    $("journal-save").disabled = false;
    $("journal-source").textContent = source;
    $("journal-sums").replaceChildren(...sums(events).flatMap(([name, value]) => [element("dt", "", name), element("dd", "", String(value))]));
    $("journal-promises").replaceChildren(...promises(events).map(({ text, isKept }) => element("li", isKept ? "kept" : "broken", text)));
    $("journal-events").replaceChildren(timeline(events));
  }

  #say(text) {
    this.#journal = null;
    $("journal-save").disabled = true;
    $("journal-source").textContent = text;
    for (const id of ["journal-sums", "journal-promises", "journal-events"]) $(id).replaceChildren();
  }
}
