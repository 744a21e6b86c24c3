// Calls that wait for a person, with clients of AG-UI, OpenAI's Responses and the AI SDK, against `advisor serve --ask`.
// Usage: node waiting.mjs ADVISOR

import { HttpAgent } from "@ag-ui/client";
import OpenAI from "openai";
import { call, model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";
import { expect, finish, test } from "./tests.mjs";

const WEATHER = "How is the weather?";
const DENIED = "not now";
/** Asks for the weather of a city, and then tells the results. */
const answer = (messages) => {
  const results = messages.slice(messages.findLastIndex(({ role }) => role !== "tool") + 1);
  if (results.length > 0) return pieces(`Read: ${results.map(({ content }) => content).join(" ")}`);
  return messages.at(-1).content === WEATHER ? call("c1", "demo_weather", ['{"city":"Oslo"}']) : pieces("Well.");
};
const other = await model(answer);
const options = ["--provider", "openai", "--model", "m", "--base-url", other.url, "--ask", "demo_*"];
const { url, close } = await serve(process.argv[2], options, { OPENAI_API_KEY: "none" });

for (const approved of [true, false]) {
  const read = approved ? "degrees" : DENIED;

  await test(`ag-ui: a run that waits is resumed, ${approved ? "approved" : "denied"}`, async (conversation) => {
    const agent = new HttpAgent({ url: `${url}/api/ag-ui`, threadId: conversation });
    agent.addMessage({ id: "u1", role: "user", content: WEATHER });
    await agent.runAgent();
    const [interrupt] = agent.pendingInterrupts;
    expect(interrupt.reason === "tool_call" && interrupt.toolCallId, interrupt);
    const without = await agent.runAgent().catch((error) => error);
    expect(without instanceof Error, "the client resumes without an answer");
    const payload = { approved, reason: approved ? undefined : DENIED };
    const { newMessages } = await agent.runAgent({ resume: [{ interruptId: interrupt.id, status: "resolved", payload }] });
    expect(newMessages.some(({ role, toolCallId }) => role === "tool" && toolCallId === interrupt.toolCallId), newMessages);
    expect(newMessages.at(-1).content.includes(read), newMessages);
    expect(agent.pendingInterrupts.length === 0, agent.pendingInterrupts);
    agent.addMessage({ id: "u2", role: "user", content: "Thanks." });
    expect((await agent.runAgent()).newMessages.at(-1).content === "Well.", "the thread does not go on");
  });

  await test(`openai: a response that waits is continued, ${approved ? "approved" : "denied"}`, async () => {
    const client = new OpenAI({ apiKey: "none", baseURL: `${url}/v1`, maxRetries: 0 });
    const first = await client.responses.stream({ model: "chain", input: WEATHER }).finalResponse();
    const [asked] = first.output;
    expect(asked.type === "mcp_approval_request" && asked.name === "demo_weather", first.output);
    const input = [{ type: "mcp_approval_response", approval_request_id: asked.id, approve: approved, reason: approved ? null : DENIED }];
    const second = await client.responses.stream({ model: "chain", input, previous_response_id: first.id }).finalResponse();
    expect(second.output_text.includes(read), second.output_text);
    const third = await client.responses.create({ model: "chain", input: "Thanks.", previous_response_id: second.id });
    expect(third.output_text === "Well.", third.output_text);
  });

  // The client of the first version refuses unknown fields.
  for (const version of ["ai6", "ai7"]) {
    await test(`${version}: a message that waits is continued, ${approved ? "approved" : "denied"}`, async (conversation) => {
      const { DefaultChatTransport, readUIMessageStream } = await import(version);
      const transport = new DefaultChatTransport({ api: `${url}/api/ui` });
      const send = async (message) => {
        const stream = await transport.sendMessages({ chatId: conversation, messages: [message], trigger: "submit-message" });
        let answer = message.role === "assistant" ? message : undefined;
        for await (const read of readUIMessageStream({ message: answer, stream, terminateOnError: true })) answer = read;
        return answer;
      };
      const user = (id, text) => ({ id: `${conversation}-${id}`, role: "user", parts: [{ type: "text", text }] });
      const asked = await send(user("u1", WEATHER));
      const decided = asked.parts.map((part) => {
        if (part.state !== "approval-requested") return part;
        return { ...part, state: "approval-responded", approval: { ...part.approval, approved, reason: approved ? undefined : DENIED } };
      });
      const message = await send({ ...asked, parts: decided });
      const tool = message.parts.find(({ type }) => type === "dynamic-tool");
      expect(tool.state === (approved ? "output-available" : "output-denied"), tool);
      expect(message.parts.at(-1).text.includes(read), message.parts);
      expect((await send(user("u2", "Thanks."))).parts.at(-1).text === "Well.", "the chat does not go on");
    });
  }
}

await close();
other.close();
finish();
