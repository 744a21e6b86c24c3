// The messages of a conversation, as the server has stored them.

import { Answer } from "./answer/answer.js";
import { apiJson, conversationPath } from "./api.js";
import { button, element, following } from "./dom.js";
import { unmarked } from "./interrupted.js";
import { UserMessage } from "./user_message.js";

/** Reads a page of stored messages: the last turns, or those before a later page, which names them. */
export const read = (id, { before, signal } = {}) => {
  const query = before ? `&before=${encodeURIComponent(before)}` : "";
  return apiJson(conversationPath(id, `?view=page${query}`), signal);
};

/** Reads all messages of a conversation, oldest first, as lines of JSON. */
export const lines = async (id) => {
  const pages = [];
  let before = null;
  do {
    const page = await read(id, { before });
    pages.push(page.messages.map((message) => `${JSON.stringify(message)}\n`).join(""));
    before = page.before;
  } while (before);
  return new Blob(pages.reverse(), { type: "application/x-ndjson" });
};

/** Reads the last turns of a conversation that may not exist yet. Then it has no messages. */
export const readIfStored = (id, { signal }) =>
  read(id, { signal }).catch((error) => (error.status === 404 ? { messages: [] } : Promise.reject(error)));

/** Reads which calls of a conversation wait, with its last turn alone. */
export const readWaiting = (id, { signal }) => apiJson(conversationPath(id, "?limit=1"), signal);

/** Offers the page before the messages that are shown, if there is one. */
export const offerEarlier = (messages, id, before, offer) => {
  if (!before) return;
  const offered = element("div", "earlier");
  const failure = element("p", "error");
  failure.role = "alert";
  const insert = (page) => {
    failure.textContent = "";
    offered.after(fragment(page.messages, offer));
    before = page.before;
    if (before) return;
    if (offered.contains(document.activeElement)) messages.focus({ preventScroll: true });
    offered.remove();
  };
  let isReading = false;
  const load = async () => {
    if (isReading) return;
    isReading = true;
    try {
      const page = await read(id, { before });
      // Another conversation may be open by now.
      if (offered.isConnected) keepInPlace(messages, offered.nextElementSibling, () => insert(page));
    } catch (error) {
      failure.textContent = error.message;
    }
    isReading = false;
  };
  offered.append(button("Earlier messages", load), failure);
  following(() => messages.prepend(offered));
};

const fragment = (stored, offer) => {
  const shown = document.createDocumentFragment();
  show(shown, stored, offer);
  return shown;
};

/** Changes the messages, and keeps one of them where the reader sees it. */
const keepInPlace = (messages, message, change) => {
  const top = () => message?.getBoundingClientRect().top ?? 0;
  const before = top();
  change();
  messages.scrollTop += top() - before;
};

/**
 * Brings the messages up to date. Those before the last question that is both shown and stored stay as they are. Returns
 * whether there is such a question.
 */
export const update = (messages, stored, offer) => {
  const placeOf = ({ dataset }) => stored.findIndex(({ turn, role }) => role === "user" && turn === dataset.turn);
  const questions = [...messages.querySelectorAll("article.user[data-turn]")];
  const last = questions.findLast((question) => placeOf(question) >= 0);
  // A turn may have several messages of the user.
  const known = questions.find(({ dataset }) => dataset.turn === last?.dataset.turn);
  const changed = fragment(known ? stored.slice(placeOf(known)) : stored, offer);
  const { activeElement: focused } = document;
  following(() => {
    while (known?.nextElementSibling) known.nextElementSibling.remove();
    if (known) known.replaceWith(changed);
    else messages.replaceChildren(changed);
  });
  if (!focused.isConnected) messages.focus({ preventScroll: true });
  return known !== undefined;
};

/** Shows stored messages. `offer` gets each message of the user, and each answer that goes on in a further turn, with the turn. */
const show = (messages, stored, offer) => {
  let answer = null;
  let count = 0;
  let shownTurn = null;
  for (const message of stored) {
    const isFurther = message.turn && message.turn !== shownTurn;
    shownTurn = message.turn;
    if (message.role === "user") {
      const shown = new UserMessage(messages, message.text);
      if (message.turn) offer(shown, message.turn);
      answer?.end();
      answer = null;
      continue;
    }
    answer ??= new Answer(messages);
    if (isFurther) offer(answer, message.turn);
    for (const event of eventsOf(message, ++count)) answer.take(event);
  }
  answer?.end();
};

/** Returns the events that an answer or a result had when it streamed. */
export const eventsOf = (message, count) => {
  if (message.role === "tool") {
    const failed = message.is_error ? [{ type: "error", id: message.id, error: message.result }] : [];
    return [...failed, { type: "tool_call_end", id: message.id, result: message.result }];
  }
  const { parts, isInterrupted } = unmarked(message.parts ?? []);
  const events = parts.flatMap((part, place) => {
    const block = `${count}.${place}`;
    switch (part.type) {
      case "call": return { type: "tool_call_start", id: part.id, tool: part.tool, args: part.args };
      case "reasoning": return { type: "reasoning", block, content: part.text };
      default: return text(block, part);
    }
  });
  return isInterrupted ? [...events, { type: "interrupted" }] : events;
};

const text = (block, { text, nodes }) => {
  const content = { type: "content", block, content: text };
  return nodes.length ? [content, { type: "rendered", block, keep: 0, nodes, rest: "" }] : [content];
};
