// Clients of OpenAI and Anthropic with their default retries: a turn that was stopped or refused is asked for once.
// Usage: node retries.mjs ADVISOR

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

import { OPEN, gate, model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";
import { expect, finish, test } from "./tests.mjs";

const [advisor] = process.argv.slice(2);
/** What the model answers, as `model` reads it. */
let answer;
const other = await model(() => answer());
const server = await serve(advisor, ["--provider", "openai", "--model", "m", "--base-url", other.url], { OPENAI_API_KEY: "none" });

const messages = [{ role: "user", content: "Are you there?" }];
const openai = (defaultHeaders) => new OpenAI({ apiKey: "none", baseURL: `${server.url}/v1`, defaultHeaders });
const anthropic = (defaultHeaders) => new Anthropic({ apiKey: "none", baseURL: server.url, defaultHeaders });
const clients = {
  "openai: chat completions": (headers, stream) => openai(headers).chat.completions.create({ model: "chain", messages, stream }),
  "openai: responses": (headers, stream) => openai(headers).responses.create({ model: "chain", input: messages, stream }),
  "anthropic: messages": (headers, stream) => anthropic(headers).messages.create({ model: "chain", max_tokens: 9, messages, stream }),
};

/** Asks, and checks that the model was asked once, and that memory has the message once. */
const once = async (conversation, ask, status, code) => {
  const before = other.questions.length;
  const error = await ask({ "x-conversation-id": conversation }).catch((error) => error);
  expect(error.status === status, `${error}`);
  const found = error.code ?? error.error?.error?.code;
  expect(found === code, `${found}: ${error}`);
  expect(other.questions.length === before + 1, `the model was asked ${other.questions.length - before} times`);
  const read = await (await fetch(`${server.url}/api/conversations/${conversation}`)).json();
  expect(read.messages.filter((message) => message.role === "user").length === 1, JSON.stringify(read));
};

for (const [name, create] of Object.entries(clients)) {
  for (const stream of [false, true]) {
    const how = stream ? "streamed" : "in one piece";
    await test(`${name}, ${how}: a stopped turn is not asked for again`, async (conversation) => {
      const asked = gate();
      answer = () => {
        answer = () => pieces("Asked again.");
        asked.release();
        return [OPEN];
      };
      const stopped = asked.opened.then(() => fetch(`${server.url}/api/conversations/${conversation}/stop`, { method: "POST" }));
      await once(conversation, (headers) => create(headers, stream), 422, "cancelled");
      expect((await stopped).status === 204, "the turn was not stopped");
    });
    await test(`${name}, ${how}: a refused turn is not asked for again`, async (conversation) => {
      const tooLong = { status: 400, error: { message: "m", code: "context_length_exceeded" } };
      const itsCode = name.startsWith("openai") ? "context_length_exceeded" : "context_overflow";
      for (const [refusal, status, code] of [[400, 400, "invalid_request"], [401, 502, "authentication"], [tooLong, 400, itsCode]]) {
        answer = () => refusal;
        await once(`${conversation}-${code}`, (headers) => create(headers, stream), status, code);
      }
    });
  }
}

await server.close();
other.close();
finish();
