// The list of conversations.

import { api } from "./api.js";
import { $, element } from "./dom.js";

/** Shows the conversations. Without an answer, the list stays as it is. */
export const list = async (current) => {
  const response = await api("/api/conversations").catch(() => null);
  const conversations = (await response?.json().catch(() => null))?.conversations;
  if (!conversations) return;
  $("conversations").replaceChildren(...conversations.map((id) => item(id, id === current)));
};

const item = (id, isCurrent) => {
  const link = element("a", "", id);
  link.href = `#${encodeURIComponent(id)}`;
  if (isCurrent) link.ariaCurrent = "true";
  const item = element("li");
  item.append(link);
  return item;
};

export const openMenu = (isOpen) => {
  document.body.classList.toggle("menu", isOpen);
  $("menu").ariaExpanded = String(isOpen);
};
