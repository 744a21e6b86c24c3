// Calls that wait for a person, and the decisions about them.

import { announce, button, copy, element, following } from "./dom.js";

/** The parts of JSON: strings, signs, and numbers or names. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Characters that have no shape of their own, or turn the direction of the text around them. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

const escaped = (char) => char.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Writes the unseen characters of a text as escapes of JSON. Line breaks stay. */
const visible = (text) => text.replace(UNSEEN, (char) => (char === "\n" ? char : escaped(char)));

/** Returns a number as the server reads it: a whole one of 64 bits exactly, any other one as the nearest double. */
const number = (token) => {
  const isExact = /^-?\d+$/.test(token) && -(2n ** 63n) <= BigInt(token) && BigInt(token) < 2n ** 64n;
  return isExact || !Number.isFinite(Number(token)) ? token : String(Number(token));
};

/**
 * Returns JSON as the server reads it, with a line for each part: of members with one name the last counts. Throws an
 * error if the text is no JSON.
 */
const pretty = (text) => {
  JSON.parse(text);
  const tokens = text.match(TOKENS).values();
  const next = () => tokens.next().value;
  const string = (token) => visible(JSON.stringify(JSON.parse(token)));
  const lines = (open, parts, close, indent) =>
    parts.length ? `${open}\n${parts.map((part) => `${indent}  ${part}`).join(",\n")}\n${indent}${close}` : open + close;
  const object = (indent) => {
    const members = new Map();
    for (let token = next(); token !== "}"; token = next()) {
      if (token === ",") continue;
      next();
      members.set(JSON.parse(token), `${string(token)}: ${value(next(), indent + "  ")}`);
    }
    return lines("{", [...members.values()], "}", indent);
  };
  const array = (indent) => {
    const items = [];
    for (let token = next(); token !== "]"; token = next()) if (token !== ",") items.push(value(token, indent + "  "));
    return lines("[", items, "]", indent);
  };
  const value = (token, indent) => {
    switch (token[0]) {
      case "{": return object(indent);
      case "[": return array(indent);
      case '"': return string(token);
      case "t": case "f": case "n": return token;
      default: return number(token);
    }
  };
  return value(next(), "");
};

/** Returns arguments as a person reads them. A text that is no JSON stays as it is. */
const readable = (text) => {
  try {
    return pretty(text);
  } catch {
    return visible(text);
  }
};

/** Returns the elements of readable arguments. No string turns the direction of the text around it. */
const elementsOf = (text) => text.split(/("(?:[^"\\]|\\.)*")/).map((part, place) => (place % 2 ? element("bdi", "", part) : part));

/** One call: its arguments, which may be changed, and the choice. */
class Choice {
  #call;
  #part;
  /** The text of the arguments before a person changes it. */
  #unchanged;

  constructor(call, number) {
    this.#call = call;
    this.element = copy("choice");
    this.#part = (selector) => this.element.querySelector(selector);
    this.#part("legend").textContent = `Tool: ${call.tool}`;
    this.#args.value = readable(call.arguments);
    // A text area has other line ends than its text may have.
    this.#unchanged = this.#args.value;
    this.#part(".error").id = `choice-${number}-error`;
    this.#args.setAttribute("aria-describedby", `choice-${number}-error`);
    this.#args.addEventListener("input", () => this.#show());
    for (const radio of this.element.querySelectorAll("[type=radio]")) radio.name = `choice-${number}`;
    this.element.addEventListener("change", () => (this.#part(".why").hidden = !this.#isDenied));
    this.#show();
  }

  get #args() {
    return this.#part(".args");
  }

  get #isDenied() {
    return this.#part("[value=deny]").checked;
  }

  get #isChanged() {
    return this.#args.value !== this.#unchanged;
  }

  /** Shows what would run. */
  #show() {
    const shown = this.#isChanged ? this.#args.value : this.#call.arguments;
    this.#part(".shown").replaceChildren(...elementsOf(readable(shown)));
    this.#complain("");
  }

  /** Checks that the changed arguments are JSON, and complains if they are not. */
  check() {
    if (this.#isDenied || !this.#isChanged) return true;
    try {
      JSON.parse(this.#args.value);
      return true;
    } catch {
      this.#complain("The arguments are no valid JSON.");
      return false;
    }
  }

  focus() {
    this.#args.focus();
  }

  get decision() {
    const { key, tool, arguments: asked } = this.#call;
    return { key, tool, arguments: asked, verdict: this.#verdict };
  }

  get #verdict() {
    if (this.#isDenied) return { denied: this.#part(".reason").value.trim() || "The user has denied it." };
    // As text, so that no number is rounded here.
    return this.#isChanged ? { approved_with: this.#args.value } : "approved";
  }

  #complain(problem) {
    this.#part(".error").textContent = problem;
    this.#args.ariaInvalid = String(problem !== "");
    if (problem) this.#part(".change").open = true;
  }
}

/** Makes the form about calls that wait. `decide` gets the decisions, and whether the form had the focus. */
const formAbout = (waiting, about, decide) => {
  const form = copy("approval");
  const choices = waiting.filter(({ started }) => !started).map((call, number) => new Choice(call, number));
  form.querySelector(".about").textContent = about;
  form.querySelector(".calls").append(...choices.map(({ element }) => element));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const invalid = choices.filter((choice) => !choice.check());
    if (invalid.length) return invalid[0].focus();
    decide(choices.map(({ decision }) => decision), form.contains(document.activeElement));
  });
  return form;
};

/** What waits for a person in the conversation that is shown: calls with a form about them, or calls that cannot be read. */
export class Approval {
  /** Whether calls may wait: the server has named them, or an answer has ended with open calls. */
  mayWait = false;
  #messages;
  #decide;
  /** The calls that the form is about, as JSON, and the form. It keeps what a person has entered. */
  #calls = null;
  #form = null;
  /** The element that is shown: the form, or the failure to read what waits. */
  #shown = null;

  constructor(messages, decide) {
    this.#messages = messages;
    this.#decide = decide;
  }

  /** Asks about the calls that wait. About the same calls it asks with the same form. */
  offer(waiting = []) {
    if (!waiting.length) return this.clear();
    const calls = JSON.stringify(waiting);
    const isLost = waiting.every(({ started }) => started);
    const about = isLost ? "A tool was started, and its result is lost. The assistant can check it." : "The assistant waits for your decision.";
    if (calls !== this.#calls) this.#form = formAbout(waiting, about, this.#decide);
    this.#calls = calls;
    this.mayWait = true;
    this.#show(this.#form);
    announce(about);
  }

  /** Says that what waits cannot be read. */
  fail(error, retry) {
    const failure = element("div", "approval");
    const text = element("p", "error", `What waits for your decision cannot be read: ${error.message}.`);
    text.role = "alert";
    failure.append(text, button("Try again", retry));
    this.#show(failure);
  }

  /** Hides what is shown, until the end of a turn that may decide it. */
  hide() {
    this.#shown?.remove();
    this.#shown = null;
  }

  /** Forgets the calls: nothing waits. */
  clear() {
    this.hide();
    this.#calls = this.#form = null;
    this.mayWait = false;
  }

  #show(element) {
    this.hide();
    this.#shown = element;
    following(() => this.#messages.append(element));
  }
}
