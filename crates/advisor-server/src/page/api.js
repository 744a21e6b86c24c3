// Requests to the server.

import { send } from "./token.js";

/** Sends a request. A refusal is an error with the server's words and its status. */
export const api = async (path, options) => {
  const response = await send(path, options);
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    const error = new Error(body.error?.message ?? `the server answered ${response.status}`);
    throw Object.assign(error, { status: response.status });
  }
  return response;
};

/** Returns the path of a conversation. */
export const conversationPath = (id, rest = "") => `api/conversations/${encodeURIComponent(id)}${rest}`;
