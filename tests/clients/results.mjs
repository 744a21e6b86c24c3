// Real clients that run a tool of the chain, and send its result.
// Usage: node results.mjs EXAMPLE, which is the example `client_tool_service`

import Anthropic from "@anthropic-ai/sdk";
import { HttpAgent } from "@ag-ui/client";
import OpenAI from "openai";

import { started } from "./serve.mjs";
import { expect, finish, test } from "./tests.mjs";

const server = await started(process.argv[2], ["127.0.0.1:0"]);
const QUESTION = "Where am I?";
const ANSWER = "You are in Oslo.";

const openai = (conversation) =>
  new OpenAI({ apiKey: "none", baseURL: `${server.url}/v1`, maxRetries: 0, defaultHeaders: { "x-conversation-id": conversation } });

await test("results: openai, chat completions, by the library's loop", async (conversation) => {
  const place = { name: "place", parameters: { type: "object", properties: {} }, parse: JSON.parse, function: () => "Oslo" };
  const tools = [{ type: "function", function: place }];
  const messages = [{ role: "user", content: QUESTION }];
  const runner = openai(conversation).chat.completions.runTools({ model: "chain", messages, tools, stream: true });
  expect((await runner.finalContent()) === ANSWER, await runner.finalContent());
});

await test("results: openai, responses, by the previous response", async () => {
  const client = new OpenAI({ apiKey: "none", baseURL: `${server.url}/v1`, maxRetries: 0 });
  const first = await client.responses.create({ model: "chain", input: QUESTION });
  const call = first.output.find((item) => item.type === "function_call");
  const input = [{ type: "function_call_output", call_id: call.call_id, output: "Oslo" }];
  const second = await client.responses.create({ model: "chain", input, previous_response_id: first.id });
  expect(second.output_text === ANSWER, second.output);
});

await test("results: anthropic, messages", async (conversation) => {
  const client = new Anthropic({ apiKey: "none", baseURL: server.url, maxRetries: 0, defaultHeaders: { "x-conversation-id": conversation } });
  const tools = [{ name: "place", input_schema: { type: "object" } }];
  const messages = [{ role: "user", content: QUESTION }];
  const ask = () => client.messages.stream({ model: "chain", max_tokens: 100, messages, tools }).finalMessage();
  const first = await ask();
  expect(first.stop_reason === "tool_use", first);
  const { id } = first.content.find((block) => block.type === "tool_use");
  const content = [{ type: "tool_result", tool_use_id: id, content: "Oslo" }];
  messages.push({ role: "assistant", content: first.content }, { role: "user", content });
  const second = await ask();
  expect(second.content[0].text === ANSWER, second.content);
});

await test("results: ag-ui", async (conversation) => {
  const agent = new HttpAgent({ url: `${server.url}/api/ag-ui`, threadId: conversation });
  const tools = [{ name: "place", description: "Returns the place of the user.", parameters: { type: "object" } }];
  agent.addMessage({ id: "u1", role: "user", content: QUESTION });
  const { newMessages } = await agent.runAgent({ tools });
  const { id } = newMessages.flatMap((message) => message.toolCalls ?? [])[0];
  agent.addMessage({ id: "r1", role: "tool", toolCallId: id, content: "Oslo" });
  expect((await agent.runAgent({ tools })).newMessages.at(-1).content === ANSWER, agent.messages);
});

for (const version of ["ai6", "ai7"]) {
  await test(`results: ${version}, addToolOutput`, async (id) => {
    const { AbstractChat, DefaultChatTransport } = await import(version);
    /** The messages of a chat without a page. */
    const state = {
      status: "ready", error: undefined, messages: [],
      pushMessage: (message) => (state.messages = [...state.messages, message]),
      popMessage: () => (state.messages = state.messages.slice(0, -1)),
      replaceMessage: (index, message) => (state.messages = state.messages.with(index, message)),
      snapshot: structuredClone,
    };
    class Chat extends AbstractChat {}
    const transport = new DefaultChatTransport({ api: `${server.url}/api/ui` });
    const chat = new Chat({ id, transport, state });
    await chat.sendMessage({ text: QUESTION });
    const { toolCallId } = state.messages.at(-1).parts.find((part) => part.type === "dynamic-tool");
    await chat.addToolOutput({ tool: "place", toolCallId, output: "Oslo" });
    await chat.sendMessage();
    expect(!state.error && state.messages.length === 2, state);
    const { parts } = state.messages.at(-1);
    expect(parts.find((part) => part.type === "dynamic-tool").state === "output-available", parts);
    expect(parts.at(-1).text === ANSWER, parts);
    // The next message begins another turn.
    await chat.sendMessage({ text: QUESTION });
    expect(!state.error && state.messages.length === 4, state);
  });
}

await server.close();
finish();
