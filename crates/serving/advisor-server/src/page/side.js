// The list of conversations, the latest first.

import { apiJson } from "./api.js";
import { $, element } from "./dom.js";

/** The conversations that are listed, each with its id and its title. */
let listed = [];
/** The last one of a page that has another page behind it. */
let next = null;
/** The number of the last request for the first page. Answers to earlier ones are too late. */
let asked = 0;

/** Reads a page of the list: the first one, or that behind a conversation. */
const read = (after) => {
  const query = after === null ? "" : `&after=${encodeURIComponent(after)}`;
  return apiJson(`api/conversations?view=page${query}`);
};

/** Reads the first page again. Without an answer, the list stays as it is. Returns the title of the current one. */
export const list = async (current) => {
  const number = ++asked;
  const page = await read(null).catch(() => null);
  if (!page || number !== asked) return null;
  merge(page);
  show(current);
  return listed.find(({ id }) => id === current)?.title;
};

/** Replaces the first page. The pages behind it stay, unless more than a page is new. */
const merge = (page) => {
  const last = page.conversations.at(-1)?.id;
  const place = page.next === null ? -1 : listed.findIndex(({ id }) => id === last);
  const behind = place < 0 ? [] : listed.slice(place + 1);
  if (!behind.length) next = page.next;
  listed = [...page.conversations, ...behind];
};

/** Removes a conversation from the list. Another one may be open by now. */
export const remove = (id) => {
  listed = listed.filter((other) => other.id !== id);
  show(currentId());
};

/** Empties the list. */
export const clear = () => {
  asked += 1;
  listed = [];
  next = null;
  show(null);
};

/** Adds the next page. */
const more = async () => {
  const after = next;
  $("more-error").textContent = "";
  try {
    const page = await read(after);
    // The list may have changed meanwhile.
    if (next !== after) return;
    next = page.next;
    listed = [...listed, ...page.conversations];
    const hadFocus = document.activeElement === $("more");
    show(currentId());
    if (hadFocus && next === null) $("conversations").lastElementChild?.firstElementChild.focus();
  } catch (error) {
    $("more-error").textContent = error.message;
  }
};

const currentId = () => $("conversations").querySelector("[aria-current]")?.parentElement.dataset.id;

/** Brings the list up to date. Items that stay are not moved, since they may have the focus or be clicked just now. */
const show = (current) => {
  const shown = $("conversations");
  const items = new Map([...shown.children].map((item) => [item.dataset.id, item]));
  const wanted = listed.map(({ id, title }) => name(items.get(id) ?? item(id), title, id === current));
  const kept = new Set(wanted);
  for (const item of items.values()) if (!kept.has(item)) item.remove();
  wanted.forEach((item, place) => {
    if (shown.children[place] !== item) shown.insertBefore(item, shown.children[place] ?? null);
  });
  $("more").hidden = next === null;
};

const item = (id) => {
  const made = element("li");
  made.dataset.id = id;
  const link = element("a");
  link.href = `#${encodeURIComponent(id)}`;
  made.append(link);
  return made;
};

const name = (item, title, isCurrent) => {
  const link = item.firstElementChild;
  if (link.textContent !== title) link.textContent = link.title = title;
  link.ariaCurrent = isCurrent ? "true" : null;
  return item;
};

$("more").addEventListener("click", more);
