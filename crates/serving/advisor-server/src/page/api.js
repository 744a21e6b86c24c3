// Requests to the server.

import { send } from "./token.js";

/** Returns the error of a request without a complete answer. A broken connection is `isBroken`. */
const unanswered = (error) => {
  const isBroken = error instanceof TypeError || error instanceof SyntaxError;
  return isBroken ? Object.assign(new Error("the server cannot be reached"), { isBroken }) : error;
};

/** Sends a request. A refusal is an error with the server's words, its status and the server's code, if it has one. */
export const api = async (path, options) => {
  const response = await send(path, options).catch((error) => Promise.reject(unanswered(error)));
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    const error = new Error(body.error?.message ?? `the server answered ${response.status}`);
    throw Object.assign(error, { status: response.status, code: body.error?.code });
  }
  return response;
};

/** Reads JSON. If the body is cut, or a proxy answers with a page, the connection counts as broken. */
export const apiJson = async (path, signal) => {
  const response = await api(path, { signal });
  return response.json().catch((error) => Promise.reject(unanswered(error)));
};

/** Returns the path of a conversation. */
export const conversationPath = (id, rest = "") => `api/conversations/${encodeURIComponent(id)}${rest}`;
