// The chat page. It shows what the server sends as text, never as markup.

import { Chat } from "./chat.js";
import { $ } from "./dom.js";
import { list, openMenu } from "./side.js";

const chat = new Chat();
/** Sends the edited text, while a message is edited. */
let editing = null;

chat.onName = (id) => {
  $("title").textContent = id ?? "New conversation";
  $("delete").hidden = !id;
  const hash = id ? `#${encodeURIComponent(id)}` : "";
  if (location.hash !== hash) history.pushState(null, "", hash || location.pathname);
};
chat.onTurn = () => list(chat.id);
chat.onEdit = (text, send) => {
  editing = send;
  $("text").value = text;
  $("text").focus();
};

const open = async (id) => {
  editing = null;
  openMenu(false);
  await chat.open(id);
  await list(chat.id);
};

/** Opens the conversation that the address names. */
const openAddress = () => {
  const id = decodeURIComponent(location.hash.slice(1)) || null;
  if (id !== chat.id || !$("messages").childElementCount) open(id);
};

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("text").value.trim();
  if (!text || chat.isBusy) return;
  $("text").value = "";
  const send = editing ?? ((written) => chat.ask(written));
  editing = null;
  send(text);
});
$("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("form").requestSubmit();
});
$("stop").addEventListener("click", () => chat.stop());
$("new").addEventListener("click", async () => {
  await open(null);
  $("text").focus();
});
$("delete").addEventListener("click", async () => {
  if (!confirm("Delete this conversation?")) return;
  await chat.delete();
  $("new").click();
});
$("menu").addEventListener("click", () => openMenu(!document.body.classList.contains("menu")));
addEventListener("popstate", openAddress);
addEventListener("hashchange", openAddress);
openAddress();
