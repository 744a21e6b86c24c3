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

/** Shows the conversations. Without an answer, the list stays as it is. Returns the title of the current one. */
export const list = async (current) => {
  const conversations = await read().catch(() => null);
  if (!conversations) return null;
  $("conversations").replaceChildren(...conversations.map((shown) => item(shown, shown.id === current)));
  return conversations.find(({ id }) => id === current)?.title;
};

const item = ({ id, title }, isCurrent) => {
  const link = element("a", "", title);
  link.href = `#${encodeURIComponent(id)}`;
  link.title = title;
  if (isCurrent) link.ariaCurrent = "true";
  const item = element("li");
  item.append(link);
  return item;
};

export const openMenu = (isOpen) => {
  document.body.classList.toggle("menu", isOpen);
  $("menu").ariaExpanded = String(isOpen);
};
