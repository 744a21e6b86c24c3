// The list of conversations, the latest first.

import { api } from "./api.js";
import { $, element } from "./dom.js";

/** The most pages of the list that are read. */
const PAGES = 20;

/** Returns the conversations, each with its id and its title. Ids are in the order of their creation. */
const read = async () => {
  const all = [];
  let after = null;
  for (let page = 0; page < PAGES; page++) {
    const query = after === null ? "" : `&after=${encodeURIComponent(after)}`;
    const { conversations, next } = await (await api(`api/conversations?view=page${query}`)).json();
    all.push(...conversations);
    if (next === null) break;
    after = next;
  }
  return all.reverse();
};

/** The number of the last request for the list. Answers to earlier ones are too late. */
let asked = 0;

/** Shows the conversations. Without an answer, the list stays as it is. Returns the title of the current one. */
export const list = async (current) => {
  const number = ++asked;
  const conversations = await read().catch(() => null);
  if (!conversations || number !== asked) return null;
  show(conversations, current);
  return conversations.find(({ id }) => id === current)?.title;
};

/** Empties the list. */
export const clear = () => {
  asked += 1;
  show([], null);
};

/** Brings the list up to date. Items that stay are not moved, since they may have the focus or be clicked just now. */
const show = (conversations, current) => {
  const shown = $("conversations");
  const items = new Map([...shown.children].map((item) => [item.dataset.id, item]));
  const wanted = conversations.map(({ id, title }) => name(items.get(id) ?? item(id), title, id === current));
  for (const item of items.values()) if (!wanted.includes(item)) item.remove();
  wanted.forEach((item, place) => {
    if (shown.children[place] !== item) shown.insertBefore(item, shown.children[place] ?? null);
  });
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

export const openMenu = (isOpen) => {
  document.body.classList.toggle("menu", isOpen);
  $("menu").ariaExpanded = String(isOpen);
};
