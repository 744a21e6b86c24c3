// The inspector beside the page: what happened in a turn, in which order.

import { apiJson, conversationPath } from "../api.js";
import { $, element, save } from "../dom.js";
import { Layer } from "../layer.js";
import { read } from "./journal.js";
import { promises } from "./promises.js";
import { sums } from "./sums.js";
import { timeline } from "./timeline.js";

/** The time between two looks at a turn that runs. */
const PACE = 300;

const show = (isOpen) => {
  $("inspector").hidden = !isOpen;
  document.body.classList.toggle("inspecting", isOpen);
  $("inspect").ariaExpanded = String(isOpen);
};

export class Panel {
  /** The turn that is shown, as `{ conversation, turn }`, and its journal. */
  #shown = null;
  #journal = null;
  #timer = null;
  /** The requests for the journal, while one is under way. */
  #loading = null;
  /** Whether the journal may have changed since the last request. */
  #isStale = false;

  #layer = new Layer($("inspector"), { first: $("inspector-close"), opener: $("inspect"), show });

  get isOpen() {
    return this.#layer.isOpen;
  }

  toggle(isOpen = !this.isOpen) {
    this.#layer.toggle(isOpen);
    if (isOpen) this.#load();
  }

  /** Shows a turn, and keeps looking at it until `end`. */
  begin(conversation, turn) {
    this.show(conversation, turn);
    this.#timer = setInterval(() => this.#loading ?? this.#load(), PACE);
  }

  end() {
    clearInterval(this.#timer);
    this.#load();
  }

  show(conversation, turn) {
    clearInterval(this.#timer);
    this.#shown = turn ? { conversation, turn } : null;
    this.#journal = null;
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

  /** Asks for the journal. One request at a time, so that no earlier answer comes behind a later one. */
  #load() {
    this.#isStale = true;
    this.#loading ??= this.#loadAll().finally(() => (this.#loading = null));
  }

  async #loadAll() {
    while (this.#isStale) {
      this.#isStale = false;
      await this.#loadOnce();
    }
  }

  async #loadOnce() {
    const shown = this.#shown;
    if (!this.isOpen || !shown) return;
    const path = conversationPath(shown.conversation, `/turns/${encodeURIComponent(shown.turn)}/journal`);
    try {
      const journal = await apiJson(path);
      // A journal only grows.
      const isKnown = this.#journal?.events?.length === journal.events?.length;
      if (this.#shown === shown && !isKnown) this.#draw(journal, `Turn ${shown.turn}`);
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
    $("journal-events").replaceChildren(...timeline(events));
  }

  #say(text) {
    this.#journal = null;
    $("journal-save").disabled = true;
    $("journal-source").textContent = text;
    for (const id of ["journal-sums", "journal-promises", "journal-events"]) $(id).replaceChildren();
  }
}
