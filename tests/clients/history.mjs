// Chats of the AI SDK that are loaded again (`GET /api/ui/{id}`), against `advisor serve`: the messages are those which the
// package's own reader makes of the streams.
// Usage: node history.mjs ADVISOR

import { isDeepStrictEqual } from "node:util";
import { CUT, call, gate, model, pieces } from "./model.mjs";
import { restartable } from "./serve.mjs";
import { expect, finish, test } from "./tests.mjs";

const VERSIONS = ["ai6", "ai7"];
let held = gate();

/** Answers by the last words of the user, and tells the results. */
const answer = (messages) => {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const results = messages.slice(messages.findLastIndex(({ role }) => role !== "tool") + 1);
  const read = () => pieces(`Read: ${results.map(({ content }) => content).join(" ")}`);
  switch (messages[asked].content) {
    case "Weather": return results.length > 0 ? read() : [...pieces("Let me look.", "reasoning_content"), ...pieces("I look."), ...call("c1", "demo_weather", ['{"city":', '"Oslo"}'])];
    case "Twice": return messages.length - asked > 3 ? read() : call("c1", "demo_weather", ['{"city":"Oslo"}']);
    case "Both": return results.length > 0 ? read() : [...call("c1", "demo_weather", ['{"city":"Oslo"}']), ...call("c2", "missing_tool", ["{}"], 1), ...call("c3", "demo_weather", ["[not json"], 2)];
    case "Break": return [...pieces("This is the beginning of a text"), CUT];
    case "Hold": return [...pieces("I am waiting."), held.opened, ...pieces(" Now I go on.")];
    default: return pieces(`You said: ${messages[asked].content}`);
  }
};
const other = await model(answer);
const options = ["--provider", "openai", "--model", "m", "--base-url", other.url];
const key = { OPENAI_API_KEY: "none" };
const plain = await restartable(process.argv[2], options, key);
const asking = await restartable(process.argv[2], [...options, "--ask", "demo_*"], key);

/** A chat as `useChat` keeps it, with the reader of the package. */
const chat = async (version, { url }, id) => {
  const { DefaultChatTransport, readUIMessageStream, validateUIMessages } = await import(version);
  const transport = new DefaultChatTransport({ api: `${url}/api/ui` });
  const messages = [];
  let sent = 0;
  const read = async (stream, message) => {
    let answer = message;
    for await (const read of readUIMessageStream({ message, stream, onError: () => {} })) answer = structuredClone(read);
    return answer;
  };
  /** Sends the last message, and reads its answer. */
  const send = async () => {
    const last = messages.at(-1);
    const stream = await transport.sendMessages({ chatId: id, messages: [last], trigger: "submit-message" });
    const answer = await read(stream, last.role === "assistant" ? last : undefined);
    messages.splice(last.role === "assistant" ? -1 : messages.length, 1, answer);
    return answer;
  };
  const say = (text) => {
    sent += 1;
    messages.push({ id: `${id}-u${sent}`, role: "user", parts: [{ type: "text", text }] });
    return send();
  };
  const load = async (query = "") => {
    const response = await fetch(`${url}/api/ui/${id}${query}`);
    expect(response.ok, `the server answered ${response.status}`);
    const loaded = await response.json();
    if (validateUIMessages) await validateUIMessages({ messages: loaded.messages });
    return loaded;
  };
  /** Joins the turn that runs. Returns a function that reads its answer. */
  const resume = async () => {
    const stream = await transport.reconnectToStream({ chatId: id });
    return () => read(stream);
  };
  return { messages, say, send, load, resume };
};

/** The messages as JSON, which has no absent fields. */
const json = (messages) => JSON.parse(JSON.stringify(messages));

/** The same without the ids of reasoning, which the first versions do not keep. */
const older = (messages) => json(messages).map(({ parts, ...message }) => ({ ...message, parts: parts.map(({ id, ...part }) => part) }));

/** Checks that both have the same messages, or names the first that differ. */
const sameIn = (version) => (loaded, kept) => {
  [loaded, kept] = [loaded, kept].map(version.endsWith("-strict") ? older : json);
  const place = kept.findIndex((message, place) => !isDeepStrictEqual(loaded[place], message));
  expect(place < 0 && loaded.length === kept.length, `${JSON.stringify(loaded[place])} is not ${JSON.stringify(kept[place])}`);
};

/** Decides about all calls of the last message, as `addToolApprovalResponse` does. */
const decide = (messages, approved) => {
  const { parts, ...message } = messages.at(-1);
  const decided = parts.map((part) => {
    if (part.state !== "approval-requested") return part;
    return { ...part, state: "approval-responded", approval: { id: part.approval.id, approved } };
  });
  messages.splice(-1, 1, { ...message, parts: decided });
};

for (const version of VERSIONS) {
  const same = sameIn(version);
  await test(`${version}: texts, reasoning and tools are loaded as they were read`, async (id) => {
    const { messages, say, load } = await chat(version, plain, id);
    for (const text of ["Weather", "Twice", "Both", "Thanks"]) await say(text);
    const { messages: loaded, running, before } = await load();
    same(loaded, messages);
    expect(running === null && before === null, [running, before]);
  });

  await test(`${version}: a page of turns, and the page before it`, async (id) => {
    const { messages, say, load } = await chat(version, plain, id);
    for (const text of ["One", "Two", "Three"]) await say(text);
    const newest = await load("?limit=2");
    const oldest = await load(`?before=${newest.before}`);
    same([...oldest.messages, ...newest.messages], messages);
  });

  await test(`${version}: an answer that breaks off says so`, async (id) => {
    const { messages, say, load } = await chat(version, plain, id);
    await say("Break");
    const [said, cut] = (await load()).messages;
    same([said], messages.slice(0, 1));
    expect(cut.id === messages[1].id && cut.parts.at(-1).type === "data-incomplete", cut);
    expect(cut.parts.some(({ text }) => text?.startsWith("This is")), cut);
  });

  await test(`${version}: a turn that runs is joined behind the loaded messages`, async (id) => {
    held = gate();
    const { messages, say, load, resume } = await chat(version, plain, id);
    await say("One");
    const told = say("Hold");
    let loaded;
    do loaded = await load(); while (loaded.running === null || loaded.messages.length < 3);
    same(loaded.messages, messages.slice(0, 3));
    const resumed = await resume();
    held.release();
    await told;
    same([await resumed()], messages.slice(-1));
    same((await load()).messages, messages);
  });

  for (const approved of [true, false]) {
    await test(`${version}: a call that waits is ${approved ? "approved" : "denied"} after the page and the server begin again`, async (id) => {
      const { messages, say, send, load } = await chat(version, asking, id);
      for (const text of ["Thanks", approved ? "Twice" : "Weather"]) await say(text);
      // A model may ask again with the same id: the turn that continues has a separate call.
      for (let rounds = approved ? 2 : 1; rounds > 0; rounds -= 1) {
        await asking.restart();
        const { messages: loaded } = await load();
        same(loaded, messages);
        expect(loaded.at(-1).parts.at(-1).state === "approval-requested", loaded.at(-1));
        messages.splice(0, messages.length, ...loaded);
        decide(messages, approved);
        await send();
        same((await load()).messages, messages);
      }
      const states = messages.at(-1).parts.filter(({ type }) => type === "dynamic-tool").map(({ state }) => state);
      expect(states.every((state) => state === (approved ? "output-available" : "output-denied")), states);
      await say("Thanks");
      await asking.restart();
      same((await load()).messages, messages);
      expect(messages.length === 6, messages);
    });
  }

  await test(`${version}: calls that are refused beside one that waits have no decision`, async (id) => {
    const { messages, say, send, load } = await chat(version, asking, id);
    await say("Both");
    decide(messages, true);
    await send();
    same((await load()).messages, messages);
    const decided = messages.at(-1).parts.filter(({ approval }) => approval?.approved);
    expect(decided.length === 1, messages);
  });
}

await plain.close();
await asking.close();
other.close();
finish();
