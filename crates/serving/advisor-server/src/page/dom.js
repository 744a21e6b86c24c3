// Small pieces of the DOM that several files need.

export const $ = (id) => document.getElementById(id);

/** Returns a copy of a template's element. */
export const copy = (id) => $(id).content.firstElementChild.cloneNode(true);

/** Creates an element with a class and a text. */
export const element = (tag, className = "", text = "") => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
};

export const button = (label, run) => {
  const made = element("button", "", label);
  made.type = "button";
  made.addEventListener("click", run);
  return made;
};

/** Lets a screen reader say a text. */
export const announce = (text) => {
  $("announcement").textContent = text;
};

/** Saves a file in the way of the browser. */
export const save = (name, content) => {
  const link = element("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
};

/** Shows the end of the messages. */
export const showEnd = () => {
  const messages = $("messages");
  messages.scrollTop = messages.scrollHeight;
};

/** Changes the messages, and keeps their end in view unless the reader has scrolled up. */
export const following = (change) => {
  const messages = $("messages");
  const atEnd = messages.scrollHeight - messages.scrollTop - messages.clientHeight < 80;
  change();
  if (atEnd) showEnd();
};
