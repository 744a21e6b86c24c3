// A server of Chat Completions with written answers. It counts the questions, and notes every other request.

import { createServer } from "node:http";
import { once } from "node:events";

/** The end of deltas whose connection breaks. */
export const CUT = Symbol("cut");

/** The end of deltas whose answer does not end. */
export const OPEN = Symbol("open");

/**
 * Starts a server. `answer` gets the messages of a request, and returns the deltas of its answer. Deltas that end with
 * `CUT` end without the end of the answer, and with `OPEN` it does not end at all. A promise among them holds back those
 * behind it. The answer is the status of a refusal, if it is a number; a refusal with a body has `status` and `error`.
 */
export const model = async (answer) => {
  const strangers = [];
  const questions = [];
  const server = createServer(async (request, response) => {
    if (request.method !== "POST" || !request.url.endsWith("/chat/completions")) {
      strangers.push(request.url);
      return response.writeHead(404).end();
    }
    let body = "";
    for await (const piece of request) body += piece;
    const { messages } = JSON.parse(body);
    questions.push(messages);
    const deltas = answer(messages);
    if (typeof deltas === "number") return response.writeHead(deltas).end();
    if (deltas.error) return response.writeHead(deltas.status).end(JSON.stringify({ error: deltas.error }));
    const reason = deltas.some((delta) => delta.tool_calls) ? "tool_calls" : "stop";
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null) => {
      const choices = [{ index: 0, delta, finish_reason }];
      response.write(`data: ${JSON.stringify({ id: "a", object: "chat.completion.chunk", created: 1, model: "m", choices })}\n\n`);
    };
    response.flushHeaders();
    for (const delta of deltas) {
      if (delta instanceof Promise) await delta;
      else if (delta !== CUT && delta !== OPEN) send(delta);
    }
    if (deltas.at(-1) === CUT) return response.socket.end();
    if (deltas.at(-1) === OPEN) return;
    send({}, reason);
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, strangers, questions, close: () => server.close() };
};

/** Returns a promise with a function that keeps it. */
export const gate = () => {
  let release;
  const opened = new Promise((done) => (release = done));
  return { opened, release };
};

/** Returns the first delta of a call, and a delta with a piece of its arguments. */
export const call = (id, name, pieces, index = 0) => [
  { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] },
  ...pieces.map((piece) => (piece instanceof Promise ? piece : { tool_calls: [{ index, function: { arguments: piece } }] })),
];

/** Returns the deltas of a text in small pieces. */
export const pieces = (text, field = "content") => text.match(/[^]{1,9}/gu).map((piece) => ({ [field]: piece }));
