// Real clients read every turn of the encoders' tests: tools that fail, are denied or never start, sources, pictures, a
// second attempt, cut answers, and failures. A server that breaks off gives them a failure, too.
// Usage: node streams.mjs STREAMS ADVISOR, where STREAMS is the example `client_streams`

import { execFileSync } from "node:child_process";

import { HttpAgent } from "@ag-ui/client";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

import { CUT, model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";
import { expect, finish, test } from "./tests.mjs";

const [program, advisor] = process.argv.slice(2);
const turns = JSON.parse(execFileSync(program, { maxBuffer: 1 << 26 }));
const CUTS = { "an answer that is cut": "length", "a call that is cut": "length", "an answer that is filtered": "content_filter", "a refusal": "content_filter", "an answer that is interrupted": "interrupted", "the limit of rounds": "limit" };
const isFailed = (turn) => turns[turn]["JSON lines"].includes('\n{"type":"error"');
const failedTurns = Object.keys(turns).filter(isFailed);
const wholeTurns = Object.keys(turns).filter((turn) => !isFailed(turn));

const same = (value, expected, what) => expect(JSON.stringify(value) === JSON.stringify(expected), `${what}: ${JSON.stringify(value)} is not ${JSON.stringify(expected)}`);

/** Returns a `fetch` that answers with these bytes, in small pieces, with a keep-alive before each event. */
const answering = (stream, keepAlive = ": keep-alive\n\n") => async () => {
  const bytes = new TextEncoder().encode(stream.replaceAll(/(?<=\n\n)(?=.)/gs, keepAlive));
  const body = new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 7) controller.enqueue(bytes.subarray(at, at + 7));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-cache" } });
};

/** Returns the text of a turn with its pictures, without breaks. */
const textOf = (streams) => {
  const lines = streams["JSON lines"].trim().split("\n").map((line) => JSON.parse(line));
  const shown = lines.filter(({ type }) => type === "delta").map(({ delta: { type, value } }) => {
    if (type === "media") return `![image](${value.source.url ?? `data:${value.mime};base64,${value.source.bytes}`})`;
    return type === "text" || type === "refusal" ? value : "";
  });
  return shown.join("").replaceAll("\n\n", "");
};

/** Returns the text of a turn without its pictures, which some protocols have elsewhere. */
const wordsOf = (streams) => textOf(streams).replaceAll(/!\[image\]\([^)]*\)/g, "");

/** Runs a client on each of these turns. An error names its turn. */
const each = async (names, run) => {
  for (const turn of names) {
    await run(turn, turns[turn]).catch((error) => {
      throw new Error(`${turn}: ${error.stack ?? error}`);
    });
  }
};

/** Checks that a client throws an error on each failed turn, with the text of the failure. */
const eachFails = (run) =>
  each(failedTurns, async (turn, streams) => {
    const error = await run(streams).then(() => undefined, (error) => error);
    expect(error, "the failure is no error");
    const text = turn === "an error before any text" ? "the model cannot be reached" : "the answer broke off";
    expect(`${error.message} ${JSON.stringify(error)}`.includes(text), `${error}`);
  });

await test("streams: there are whole turns and failed ones", async () => {
  expect(wholeTurns.length > 20 && failedTurns.length > 3, { wholeTurns, failedTurns });
  expect(Object.keys(CUTS).every((turn) => wholeTurns.includes(turn)), wholeTurns);
});

for (const line of ["ai6", "ai7"]) {
  const { DefaultChatTransport, readUIMessageStream, validateUIMessages } = await import(line);
  const read = async (streams) => {
    const transport = new DefaultChatTransport({ api: "http://localhost/api/ui", fetch: answering(streams["UI messages"]) });
    const stream = await transport.sendMessages({ chatId: "c1", messages: [], trigger: "submit-message" });
    let last;
    for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message;
    return last;
  };
  const states = (message) => Object.fromEntries(message.parts.filter(({ type }) => type === "dynamic-tool").map(({ toolCallId, state }) => [toolCallId, state]));
  const of = (message, type) => message.parts.filter((part) => part.type === type);

  await test(`streams: ${line}: every turn is read to its end`, () =>
    each(wholeTurns, async (turn, streams) => {
      const message = await read(streams);
      const shown = of(message, "text").map(({ text }) => text).join("");
      expect(message.id === "m1" && of(message, "text").every(({ state }) => state === "done"), message);
      same(shown, wordsOf(streams), "text");
      same(of(message, "data-incomplete").map(({ data }) => data.reason), CUTS[turn] ? [CUTS[turn]] : [], "reasons");
      // The first version has no check. The first ones that have it refuse a message without parts.
      if (message.parts.length > 0) await validateUIMessages?.({ messages: [message] });
    }));

  await test(`streams: ${line}: tools, sources, pictures and a second attempt are shown`, async () => {
    for (const [turn, expected] of [
      ["a failed tool", { c1: "output-error", c2: "output-available" }],
      ["an unknown tool", { c1: "output-error" }],
      ["arguments that are no JSON", { c1: "output-error" }],
      ["a denied call", { c1: "output-available", c2: "output-error" }],
      ["tools that end in reverse order", { c1: "output-available", c2: "output-available" }],
      ["a call for the client", { c1: "input-available" }],
      ["a call that is cut", { c1: "output-error" }],
    ]) {
      same(states(await read(turns[turn])), expected, turn);
    }
    same(of(await read(turns.sources), "source-url").map(({ sourceId, title }) => [sourceId, title]), [["source-1", "Rain"], ["source-2", "Wind"]], "sources");
    same(of(await read(turns["a picture"]), "file").map(({ mediaType, url }) => [mediaType, url]), [["image/png", "data:image/png;base64,AQID"]], "pictures");
    same(of(await read(turns["a second attempt"]), "data-restart").map(({ data }) => data), [{ round: 1 }], "attempts");
  });

  await test(`streams: ${line}: a failure is an error`, () => eachFails(read));
}

/** Runs an agent. Its client tells of a failure by an event. */
const run = async (config) => {
  const client = new HttpAgent(config);
  client.addMessage({ id: "u1", role: "user", content: "How is it?" });
  const results = [];
  let failure;
  const outcome = await client.runAgent({ runId: "r1" }, {
    onToolCallResultEvent: ({ event }) => void results.push([event.toolCallId, event.content]),
    onRunErrorEvent: ({ event }) => void (failure = event),
  });
  if (failure) throw new Error(`${failure.code}: ${failure.message}`);
  return { ...outcome, results };
};
const agent = (streams) => run({ url: "http://localhost/api/ag-ui", threadId: "t1", fetch: answering(streams["AG-UI"]) });

await test("streams: ag-ui: every turn is read to its end", () =>
  each(wholeTurns, async (turn, streams) => {
    const { result, newMessages } = await agent(streams);
    same(result?.incomplete?.reason, CUTS[turn], "reason");
    const shown = newMessages.filter(({ role }) => role === "assistant").map(({ content }) => content ?? "").join("");
    same(shown, wordsOf(streams), "text");
  }));

await test("streams: ag-ui: tools end in any order, and a denied one has its reason", async () => {
  const { results, newMessages } = await agent(turns["tools that end in reverse order"]);
  same(results, [["c2", "early"], ["c1", "late"]], "results");
  expect(newMessages.filter(({ role }) => role === "tool").length === 2, newMessages);
  const denied = (await agent(turns["a denied call"])).results.find(([id]) => id === "c2");
  expect(denied[1].includes("left this call out"), denied);
});

await test("streams: ag-ui: a failure is an error", () => eachFails(agent));

const openai = (fetch) => new OpenAI({ apiKey: "none", baseURL: "http://localhost/v1", maxRetries: 0, fetch });
const anthropic = (fetch) => new Anthropic({ apiKey: "none", baseURL: "http://localhost", maxRetries: 0, fetch });
const PING = 'event: ping\ndata: {"type":"ping"}\n\n';
const messages = [{ role: "user", content: "How is it?" }];
const FORMS = [
  ["openai, chat completions", "Chat Completions", async (fetch) => {
    const { message, finish_reason } = (await openai(fetch).chat.completions.stream({ model: "chain", messages }).finalChatCompletion()).choices[0];
    return { text: (message.content ?? "") + (message.refusal ?? ""), reason: finish_reason, calls: message.tool_calls?.length ?? 0 };
  }, ["length", "content_filter", "length", "tool_calls"]],
  ["openai, responses", "Responses", async (fetch) => {
    const response = await openai(fetch).responses.stream({ model: "chain", input: messages }).finalResponse();
    if (response.status === "failed") throw new Error(response.error.message);
    const calls = response.output.filter(({ type }) => type === "function_call").length;
    const parts = response.output.filter(({ type }) => type === "message").flatMap(({ content }) => content);
    return { text: parts.map(({ text, refusal }) => text ?? refusal).join(""), reason: response.incomplete_details?.reason, calls };
  }, ["max_output_tokens", "content_filter", "max_output_tokens", undefined]],
  ["anthropic", "Messages", async (fetch) => {
    const message = await anthropic(fetch).messages.stream({ model: "chain", max_tokens: 9, messages }).finalMessage();
    const text = message.content.filter(({ type }) => type === "text").map(({ text }) => text).join("");
    return { text, reason: message.stop_reason, calls: message.content.filter(({ type }) => type === "tool_use").length };
  }, ["max_tokens", "refusal", "max_tokens", "tool_use"]],
];
for (const [name, form, ask, [length, filter, interrupted, call]] of FORMS) {
  for (const protocol of [form, ...(form === "Chat Completions" ? [`${form} with usage`] : [])]) {
    const read = (streams) => ask(answering(streams[protocol], form === "Messages" ? PING : undefined));
    await test(`streams: ${name}, ${protocol}: every turn is read to its end`, () =>
      each(wholeTurns, async (turn, streams) => {
        const { text, reason, calls } = await read(streams);
        same(text.replaceAll("\n\n", ""), textOf(streams), "text");
        const cut = { length, content_filter: filter, interrupted, limit: length }[CUTS[turn]];
        if (cut) same(reason, cut, "reason");
        if (turn === "a call for the client") same([reason, calls], [call, 1], "the call");
        else if (turn !== "calls for both" && turn !== "calls of both sides that wait") expect(calls === 0, "a tool of the server is shown as a call");
      }));
    await test(`streams: ${name}, ${protocol}: a failure is an error`, () => eachFails(read));
  }
}

// The same failure from a server whose model breaks off.
const broken = await model(() => [...pieces("This is the beginning of a text"), CUT]);
const server = await serve(advisor, ["--provider", "openai", "--model", "m", "--base-url", broken.url], { OPENAI_API_KEY: "none" });
const breaksOff = async (ask) => {
  const error = await ask().then((answer) => ({ message: `no error: ${JSON.stringify(answer)}` }), (error) => error);
  expect(`${error.message} ${JSON.stringify(error)}`.includes("the answer broke off"), `${error.message}`);
};
const atServer = (request, init) => fetch(new URL(new URL(request.url ?? request).pathname, server.url), init);
for (const [name, , ask] of FORMS) await test(`streams: ${name}: a model that breaks off is an error`, () => breaksOff(() => ask(atServer)));
await test("streams: ag-ui: a model that breaks off is an error", () =>
  breaksOff(() => run({ url: `${server.url}/api/ag-ui`, threadId: "broken" })));
await server.close();
broken.close();

finish();
