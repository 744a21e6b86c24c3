// The token that the server asks for. This tab alone keeps it, until it is closed.

import { $ } from "./dom.js";

/** The place of the page, from which its routes are named: an application may have it under a path. */
const PLACE = new URL(".", import.meta.url);
const KEY = `token of ${PLACE.pathname}`;

const LOGIN = "Log in to the application, and load this page again.";
/** Whether an application knows the users by a login of its own. */
const hasLogin = document.documentElement.dataset.login === "application";
const REFUSED = hasLogin ? LOGIN : "the server needs a token";

/** The request of the user for a token, while the form is open. */
let asking = null;

/** Whether the user has closed the form without a token. Then only a request that changes something opens it again. */
let isDeclined = false;

const kept = () => sessionStorage.getItem(KEY);

const request = (path, { headers, ...options }, token) => {
  const authorization = token && { authorization: `Bearer ${token}` };
  return fetch(new URL(path, PLACE), { ...options, headers: { ...headers, ...authorization } });
};

/** Sends a request with the token. If the server refuses it, asks the user for another one, and sends it again. */
export const send = async (path, options = {}) => {
  for (;;) {
    const token = kept();
    const response = await request(path, options, token);
    if (response.status !== 401) return response;
    // A browser keeps the connection of an answer that is not read.
    await response.text().catch(() => {});
    // Another request may have asked in the meantime.
    if (token === kept() && !(await another(options.method))) throw new Error(REFUSED);
  }
};

export const forget = () => {
  sessionStorage.removeItem(KEY);
  isDeclined = false;
  showKept();
};

/** Asks for a token. Returns whether the user has entered one that the server takes. */
const another = (method = "GET") => {
  if (!asking) {
    if (isDeclined && method === "GET") return false;
    asking = {};
    asking.promise = new Promise((resolve) => (asking.resolve = resolve));
    $("access").returnValue = "";
    $("access").showModal();
    say(kept() ? "The server does not take the token any more." : "");
  }
  return asking.promise;
};

const say = (text) => {
  $("access-error").textContent = text;
  $("token").ariaInvalid = String(text !== "");
};

/** Returns why the server does not take a token, or nothing if it does. */
const refusal = async (token) => {
  // A header has no other letters.
  if (!/^[!-~]+$/.test(token)) return "The server does not take this token.";
  const response = await request("v1/models", {}, token).catch(() => null);
  await response?.text().catch(() => {});
  if (response?.ok) return "";
  if (response?.status === 401) return "The server does not take this token.";
  return response ? `The server answered ${response.status}.` : "The server cannot be reached.";
};

if (hasLogin) {
  $("access-title").textContent = "Not logged in";
  $("access-about").textContent = `${LOGIN} If the application has given you a token, enter it here.`;
}

const showKept = () => {
  $("forget").hidden = !kept();
};

$("access-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = $("token").value.trim();
  const opened = asking;
  const text = await refusal(token);
  if (asking !== opened) return;
  say(text);
  if (text) {
    $("token").focus();
    return $("token").select();
  }
  sessionStorage.setItem(KEY, token);
  showKept();
  $("access").close("taken");
});
$("access-cancel").addEventListener("click", () => $("access").close());
$("access").addEventListener("close", () => {
  $("token").value = "";
  isDeclined = $("access").returnValue !== "taken";
  asking.resolve(!isDeclined);
  asking = null;
});
showKept();
