// The clients of OpenAI and Anthropic against a server with policies: a denied call and a replaced name are text.
// Usage: node policy.mjs EXAMPLE, which is the example `policy_service`

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

import { started } from "./serve.mjs";
import { expect, finish, test } from "./tests.mjs";

const server = await started(process.argv[2], ["127.0.0.1:0"]);
const DENIED = "[The call of `delete_account` was denied: Ask an administrator.]";
const messages = [{ role: "user", content: "Where is the order?" }];

/** Checks the text of an answer, and the pieces in which it streamed. */
const check = (text, pieces = [text]) => {
  expect(text.includes("the order of [name] and") && text.endsWith("The order is on its way."), text);
  expect(text.split(DENIED).length === 2, text);
  expect(pieces.join("") === text && !pieces.join("").includes("Mal"), pieces);
};

const openai = new OpenAI({ apiKey: "none", baseURL: `${server.url}/v1`, maxRetries: 0 });
const anthropic = new Anthropic({ apiKey: "none", baseURL: server.url, maxRetries: 0 });

await test("policy: openai, chat completions, streamed", async () => {
  const stream = openai.chat.completions.stream({ model: "chain", messages });
  const pieces = [];
  stream.on("content", (piece) => pieces.push(piece));
  const { message, finish_reason } = (await stream.finalChatCompletion()).choices[0];
  check(message.content, pieces);
  expect(finish_reason === "stop" && !message.tool_calls?.length, message);
});

await test("policy: openai, chat completions, in one piece", async () => {
  const { message } = (await openai.chat.completions.create({ model: "chain", messages })).choices[0];
  check(message.content);
});

await test("policy: openai, responses, streamed and in one piece", async () => {
  const stream = openai.responses.stream({ model: "chain", input: messages });
  const pieces = [];
  stream.on("response.output_text.delta", (event) => pieces.push(event.delta));
  const first = await stream.finalResponse();
  check(first.output_text, pieces);
  expect(first.output.every((item) => item.type === "message"), first.output);
  check((await openai.responses.create({ model: "chain", input: messages })).output_text);
});

await test("policy: anthropic, messages, streamed and in one piece", async () => {
  const request = { model: "chain", max_tokens: 100, messages };
  const text = (message) => {
    expect(message.stop_reason === "end_turn" && message.content.every((block) => block.type === "text"), message);
    return message.content.map((block) => block.text).join("");
  };
  const stream = anthropic.messages.stream(request);
  const pieces = [];
  stream.on("text", (piece) => pieces.push(piece));
  check(text(await stream.finalMessage()), pieces);
  check(text(await anthropic.messages.create(request)));
});

await server.close();
finish();
