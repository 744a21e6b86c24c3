// Requests to the server.

/** The place of the page, from which its routes are named: an application may have it under a path. */
const PLACE = new URL(".", import.meta.url);

/** Sends a request. A refusal is an error with the server's words. */
export const api = async (path, options = {}) => {
  const response = await fetch(new URL(path, PLACE), options);
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new Error(body.error?.message ?? `the server answered ${response.status}`);
  }
  return response;
};

/** Returns the path of a conversation. */
export const conversationPath = (id, rest = "") => `api/conversations/${encodeURIComponent(id)}${rest}`;
