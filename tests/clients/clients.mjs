// Real clients against `advisor serve`: each runs two turns, the first with a tool. The second shows that memory has the
// first, although the client sends only its new message where its protocol allows it.
// Usage: node clients.mjs URL

import Anthropic from "@anthropic-ai/sdk";
import { HttpAgent } from "@ag-ui/client";
import OpenAI from "openai";
import { expect, finish, test } from "./tests.mjs";

const url = process.argv[2];
const WEATHER = "How is the weather?";
const SECOND = "And who are you?";
/** A picture of one pixel. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const MEMORY = "This is message 2 of the conversation";

const includes = (text, part) => expect(text?.includes(part), `${JSON.stringify(text)} lacks ${JSON.stringify(part)}`);

const openai = (conversation) =>
  new OpenAI({ apiKey: "none", baseURL: `${url}/v1`, maxRetries: 0, defaultHeaders: { "x-conversation-id": conversation } });

await test("openai: chat completions, streamed", async (conversation) => {
  const client = openai(conversation);
  const ask = async (content) => {
    const stream = client.chat.completions.stream({ model: "chain", messages: [{ role: "user", content }], stream_options: { include_usage: true } });
    let pieces = 0;
    stream.on("content", () => (pieces += 1));
    const completion = await stream.finalChatCompletion();
    expect(pieces > 3, `the text came in ${pieces} pieces`);
    expect(!completion.choices[0].message.tool_calls?.length, "a tool of the server is shown as a call");
    return completion.choices[0].message.content;
  };
  includes(await ask(WEATHER), "degrees");
  includes(await ask(SECOND), MEMORY);
});

await test("openai: chat completions, in one piece, with the client's history", async (conversation) => {
  const client = openai(conversation);
  const messages = [{ role: "user", content: WEATHER }];
  const first = await client.chat.completions.create({ model: "chain", messages });
  includes(first.choices[0].message.content, "degrees");
  messages.push(first.choices[0].message, { role: "user", content: SECOND });
  includes((await client.chat.completions.create({ model: "chain", messages })).choices[0].message.content, MEMORY);
});

await test("openai and anthropic: pictures of the user", async (conversation) => {
  const data = `data:image/png;base64,${PICTURE}`;
  const image = { type: "image_url", image_url: { url: data } };
  const chat = (part) => openai(conversation).chat.completions.create({ model: "chain", messages: [{ role: "user", content: [{ type: "text", text: SECOND }, part] }] });
  includes((await chat(image)).choices[0].message.content, "This is message 1");
  const refused = await chat({ type: "file", file: { file_id: "file-1" } }).catch((error) => error);
  expect(refused instanceof OpenAI.BadRequestError && refused.message.includes("`file`"), `${refused}`);
  const input = [{ role: "user", content: [{ type: "input_text", text: SECOND }, { type: "input_image", image_url: data, detail: "auto" }] }];
  includes((await openai(conversation).responses.create({ model: "chain", input, conversation })).output_text, MEMORY);
  const client = new Anthropic({ apiKey: "none", baseURL: url, maxRetries: 0, defaultHeaders: { "x-conversation-id": conversation } });
  const source = { type: "base64", media_type: "image/png", data: PICTURE };
  const content = [{ type: "image", source }, { type: "text", text: SECOND }];
  const message = await client.messages.create({ model: "chain", max_tokens: 100, messages: [{ role: "user", content }] });
  includes(message.content.findLast((block) => block.type === "text").text, "This is message 3");
});

await test("openai: responses, streamed and in one piece", async (conversation) => {
  const client = new OpenAI({ apiKey: "none", baseURL: `${url}/v1`, maxRetries: 0 });
  const stream = client.responses.stream({ model: "chain", input: WEATHER, conversation });
  const first = await stream.finalResponse();
  expect(first.status === "completed", first.status);
  includes(first.output_text, "degrees");
  includes((await client.responses.create({ model: "chain", input: SECOND, conversation })).output_text, MEMORY);
});

await test("openai: responses, by the previous response, with the client's history", async () => {
  const client = new OpenAI({ apiKey: "none", baseURL: `${url}/v1`, maxRetries: 0 });
  const first = await client.responses.stream({ model: "chain", input: WEATHER }).finalResponse();
  includes(first.output_text, "degrees");
  const second = await client.responses.create({ model: "chain", input: SECOND, previous_response_id: first.id });
  includes(second.output_text, MEMORY);
  // Both at once: the items of the answers, also those that are no messages.
  expect(first.output.some((item) => !item.role), JSON.stringify(first.output));
  const input = [{ role: "user", content: WEATHER }, ...first.output, { role: "user", content: SECOND }, ...second.output, { role: "user", content: "And then?" }];
  const third = await client.responses.create({ model: "chain", input, previous_response_id: second.id });
  includes(third.output_text, "This is message 3 of the conversation");
  const unknown = await client.responses.create({ model: "chain", input: SECOND, previous_response_id: "resp_0" }).catch((error) => error);
  expect(unknown instanceof OpenAI.BadRequestError && unknown.code === "previous_response_not_found", `${unknown}`);
});

await test("openai: models and errors", async (conversation) => {
  const client = openai(conversation);
  const models = [];
  for await (const model of client.models.list()) models.push(model.id);
  expect(models.length === 1, JSON.stringify(models));
  const error = await client.chat.completions.create({ model: "chain", messages: [] }).catch((error) => error);
  expect(error.status === 400 && error.code === "invalid_request", `${error}`);
  const messages = [{ role: "user", content: WEATHER }];
  const unknown = await client.chat.completions.create({ model: "gpt-5", messages }).catch((error) => error);
  expect(unknown instanceof OpenAI.NotFoundError && unknown.code === "model_not_found", `${unknown}`);
});

await test("openai and anthropic: a history that the server does not have is refused", async (conversation) => {
  const messages = [{ role: "user", content: WEATHER }, { role: "assistant", content: "It is fine." }, { role: "user", content: SECOND }];
  const chat = await openai(conversation).chat.completions.create({ model: "chain", messages }).catch((error) => error);
  expect(chat instanceof OpenAI.BadRequestError && chat.code === "history_not_found", `${chat}`);
  const responses = await openai(conversation).responses.create({ model: "chain", input: messages }).catch((error) => error);
  expect(responses instanceof OpenAI.BadRequestError && responses.code === "history_not_found", `${responses}`);
  const client = new Anthropic({ apiKey: "none", baseURL: url, maxRetries: 0, defaultHeaders: { "x-conversation-id": conversation } });
  const refused = await client.messages.create({ model: "chain", max_tokens: 100, messages }).catch((error) => error);
  expect(refused instanceof Anthropic.BadRequestError, `${refused}`);
});

await test("anthropic: messages, streamed and in one piece", async (conversation) => {
  const client = new Anthropic({ apiKey: "none", baseURL: url, maxRetries: 0, defaultHeaders: { "x-conversation-id": conversation } });
  const request = (content) => ({ model: "chain", max_tokens: 100, messages: [{ role: "user", content }] });
  const text = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");
  const first = await client.messages.stream(request(WEATHER)).finalMessage();
  expect(first.stop_reason === "end_turn", first.stop_reason);
  expect(first.content.some((block) => block.type === "thinking"), "the reasoning is missing");
  includes(text(first), "degrees");
  includes(text(await client.messages.create(request(SECOND))), MEMORY);
});

await test("ag-ui: a run with tools, and memory", async (conversation) => {
  const agent = new HttpAgent({ url: `${url}/api/ag-ui`, threadId: conversation });
  agent.addMessage({ id: "u1", role: "user", content: WEATHER });
  const { newMessages } = await agent.runAgent();
  const results = newMessages.filter((message) => message.role === "tool");
  expect(results.length === 2, `${results.length} results`);
  includes(newMessages.at(-1).content, "degrees");
  const picture = { type: "image", source: { type: "data", value: PICTURE, mimeType: "image/png" } };
  agent.addMessage({ id: "u2", role: "user", content: [{ type: "text", text: SECOND }, picture] });
  includes((await agent.runAgent()).newMessages.at(-1).content, MEMORY);
  const tools = [{ name: "weather", description: "Tells the weather.", parameters: { type: "object" } }];
  const refused = await agent.runAgent({ tools }).catch((error) => error);
  expect(refused instanceof Error, "tools of the client are refused");
});

// The transport of useChat, of each line.
for (const version of ["ai6", "ai7"]) {
  await test(`${version}: two turns with tools, and a failure`, async (conversation) => {
    const { DefaultChatTransport, readUIMessageStream } = await import(version);
    const transport = new DefaultChatTransport({ api: `${url}/api/ui` });
    const messages = [];
    const picture = { type: "file", mediaType: "image/png", url: `data:image/png;base64,${PICTURE}` };
    const ask = async (text) => {
      messages.push({ id: `${conversation}-${messages.length}`, role: "user", parts: [{ type: "text", text }, picture] });
      const stream = await transport.sendMessages({ chatId: conversation, messages, trigger: "submit-message" });
      let answer;
      for await (const message of readUIMessageStream({ stream, terminateOnError: true })) answer = message;
      messages.push(answer);
      return answer;
    };
    const first = await ask(WEATHER);
    const tools = first.parts.filter((part) => part.type === "dynamic-tool");
    expect(tools.length === 2 && tools.every((tool) => tool.state === "output-available"), JSON.stringify(tools));
    expect(first.parts.some((part) => part.type === "reasoning"), "the reasoning is missing");
    includes((await ask(SECOND)).parts.at(-1).text, MEMORY);
    expect((await transport.reconnectToStream({ chatId: conversation })) === null, "no turn runs any more");
    const broken = await transport.sendMessages({ chatId: conversation, messages: [], trigger: "submit-message" }).catch((error) => error);
    expect(broken instanceof Error, "a bad request is an error");
  });
}

finish();
