// A server of Chat Completions with written answers. It notes every other request.

import { createServer } from "node:http";
import { once } from "node:events";

/** The end of deltas whose connection breaks. */
export const CUT = Symbol("cut");

/**
 * Starts a server. `answer` gets the messages of a request, and returns the deltas of its answer. Deltas that end with
 * `CUT` end without the end of the answer. The answer is the status of a refusal, if it is a number.
 */
export const model = async (answer) => {
  const strangers = [];
  const server = createServer(async (request, response) => {
    if (request.method !== "POST" || !request.url.endsWith("/chat/completions")) {
      strangers.push(request.url);
      return response.writeHead(404).end();
    }
    let body = "";
    for await (const piece of request) body += piece;
    const deltas = answer(JSON.parse(body).messages);
    if (typeof deltas === "number") return response.writeHead(deltas).end();
    const reason = deltas.some((delta) => delta.tool_calls) ? "tool_calls" : "stop";
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null) => {
      const choices = [{ index: 0, delta, finish_reason }];
      response.write(`data: ${JSON.stringify({ id: "a", object: "chat.completion.chunk", created: 1, model: "m", choices })}\n\n`);
    };
    deltas.filter((delta) => delta !== CUT).forEach((delta) => send(delta));
    if (deltas.at(-1) === CUT) return response.socket.end();
    send({}, reason);
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, strangers, close: () => server.close() };
};

/** Returns the deltas of a text in small pieces. */
export const pieces = (text, field = "content") => text.match(/[^]{1,9}/gu).map((piece) => ({ [field]: piece }));
