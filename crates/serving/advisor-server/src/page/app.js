// The chat page. It shows what the server sends as text, never as markup.

import { Chat } from "./chat.js";
import { $ } from "./dom.js";
import { Panel } from "./inspector/panel.js";
import { closeMenu } from "./menu.js";
import { clear, list, remove } from "./side.js";
import { forget } from "./token.js";

const chat = new Chat();
const panel = new Panel();
/** Sends the edited text, while a message is edited. */
let editing = null;

const edit = (send) => {
  editing = send;
  $("editing").hidden = !send;
};

chat.onName = (id) => {
  $("export").hidden = $("delete").hidden = !id;
  const hash = id ? `#${encodeURIComponent(id)}` : "";
  if (location.hash !== hash) history.pushState(null, "", hash || location.pathname);
};
chat.onTurn = () => {
  panel.end();
  showList();
};
chat.onBegin = (turn) => panel.begin(chat.id, turn);
chat.onInspect = (turn, isWanted = false) => {
  panel.show(chat.id, turn);
  if (isWanted) inspect(true);
};
chat.onEditEnd = () => edit(null);
chat.onEdit = (text, send) => {
  edit(send);
  $("text").value = text;
  $("text").focus();
};

const cancelEdit = () => {
  edit(null);
  $("text").value = "";
  $("text").focus();
};

const open = async (id) => {
  edit(null);
  closeMenu();
  panel.show(null, null);
  $("title").textContent = "New conversation";
  document.title = "Chat";
  await chat.open(id);
  await showList();
};

/** Shows the list of conversations, and the title of this one. */
const showList = async () => {
  const { id } = chat;
  const title = (await list(id)) ?? chat.question;
  if (title && chat.id === id) $("title").textContent = document.title = title;
};

/** Returns the id of the conversation that the address names, if it names one. */
const addressed = () => {
  try {
    return decodeURIComponent(location.hash.slice(1)) || null;
  } catch {
    return null;
  }
};

/** Sends the text, once the conversation is open. If another one is opened before that, the text stays a draft. */
const submit = async () => {
  const { opening } = chat;
  await opening;
  const text = $("text").value.trim();
  if (!text || chat.isBusy || chat.opening !== opening) return;
  $("text").value = "";
  const send = editing ?? ((written) => chat.ask(written));
  edit(null);
  send(text);
};

const inspect = (isOpen) => {
  closeMenu();
  panel.toggle(isOpen);
};

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
$("editing-cancel").addEventListener("click", cancelEdit);
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Escape" && editing) return cancelEdit();
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("form").requestSubmit();
});
$("stop").addEventListener("click", () => chat.stop());
$("new").addEventListener("click", () => {
  open(null);
  $("text").focus();
});
$("export").addEventListener("click", () => chat.export());
$("delete").addEventListener("click", async () => {
  if (!confirm("Delete this conversation?")) return;
  const { id } = chat;
  if (!(await chat.delete())) return;
  remove(id);
  if (chat.id === id) $("new").click();
});
$("forget").addEventListener("click", () => {
  forget();
  // The next user sees nothing of this one.
  $("text").value = "";
  clear();
  open(null);
});
$("inspect").addEventListener("click", () => inspect());
$("inspector-close").addEventListener("click", () => inspect(false));
$("journal-open").addEventListener("click", () => $("journal-file").click());
$("journal-file").addEventListener("change", ({ target }) => {
  if (target.files.length) panel.open(target.files[0]);
  target.value = "";
});
$("journal-save").addEventListener("click", () => panel.save());
addEventListener("keydown", (event) => {
  if (!event.altKey || event.code !== "KeyI") return;
  event.preventDefault();
  inspect();
});
// Every change of the address by a link or by the history is a change of the hash.
addEventListener("hashchange", () => {
  if (addressed() !== chat.id) open(addressed());
});
open(addressed());
