// A part of the page that covers the others on a narrow screen. Then the others are inert, and Escape closes it.

/** The width up to which parts cover others, as in the style sheets. */
const narrow = matchMedia("(max-width: 46rem)");

export class Layer {
  #part;
  #first;
  #opener;
  #show;
  #isOpen = false;

  /** `first` gets the focus, `opener` gets it back, and `show` shows or hides the part. */
  constructor(part, { first, opener, show }) {
    this.#part = part;
    this.#first = first;
    this.#opener = opener;
    this.#show = show;
    part.addEventListener("keydown", ({ key }) => key === "Escape" && this.#covers && this.toggle(false));
    narrow.addEventListener("change", () => this.#isOpen && this.#update());
  }

  get isOpen() {
    return this.#isOpen;
  }

  toggle(isOpen) {
    // A click beside the part takes the focus from everything.
    const hadFocus = this.#hasFocus || document.activeElement === document.body;
    this.#isOpen = isOpen;
    this.#show(isOpen);
    this.#update();
    if (!isOpen && hadFocus) this.#opener.focus();
  }

  get #covers() {
    return this.#isOpen && narrow.matches;
  }

  get #hasFocus() {
    return this.#part.contains(document.activeElement);
  }

  #update() {
    for (const other of document.querySelectorAll("body > main, body > aside")) {
      other.inert = this.#covers && other !== this.#part;
    }
    if (this.#covers && !this.#hasFocus) this.#first.focus();
  }
}
