// `useChat` of the AI SDK with React in Chromium, on a page of another site, against `advisor serve`.
// Usage: node use_chat.mjs ADVISOR CHROMIUM [FOLDER]

import { once } from "node:events";
import { createServer } from "node:http";
import { build } from "esbuild";
import { ask, expect, run } from "./browser.mjs";
import { CUT, OPEN, gate, model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);
const LINES = { v6: "6", v7: "7" };
const SECOND = "And what have I asked?";
const FAIL = "Fail, please.";
const WAIT = "Wait, please.";
const BREAK = "Break off, please.";

/** Holds back the answer to results, while a test needs it. */
let held = gate();
held.release();

/** Answers with the questions so far. The weather needs two tools, one of which does not exist. */
const answer = (messages) => {
  const asked = messages.filter(({ role }) => role === "user").map(({ content }) => content);
  const call = (index, name) => ({ tool_calls: [{ index, id: `call_${asked.length}_${index}`, function: { name, arguments: '{"city":"Oslo"}' } }] });
  const results = messages.slice(messages.findLastIndex(({ role }) => role !== "tool") + 1);
  if (results.some(({ content }) => content.includes("not now"))) return pieces("Then I will not look.");
  if (results.length > 0) return [held.opened, ...pieces("It is a few degrees in Oslo.")];
  switch (asked.at(-1)) {
    case "How is the weather?": return [...pieces("Let me look."), call(0, "demo_weather"), call(1, "missing_tool")];
    case FAIL: return 400;
    case WAIT: return [...pieces("I am waiting."), OPEN];
    case BREAK: return [...pieces("This is the beginning of a text"), CUT];
    default: return pieces(`You have asked: ${asked.join(" ")}`);
  }
};

/** Serves the page, with a script for each line of the AI SDK. */
const application = async () => {
  const scripts = new Map();
  for (const [profile, line] of Object.entries(LINES)) {
    const { outputFiles } = await build({
      absWorkingDir: import.meta.dirname,
      entryPoints: ["use_chat_app.mjs"],
      bundle: true,
      // The first line has no approvals.
      logOverride: { "import-is-undefined": "silent" },
      write: false,
      define: { "process.env.NODE_ENV": '"production"' },
      alias: { "@ai-sdk/react": `ai-react${line}`, ai: `ai${line}` },
    });
    scripts.set(`/${profile}.js`, outputFiles[0].text);
  }
  const server = createServer(({ url }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    const script = scripts.get(pathname);
    response.setHeader("content-type", script ? "text/javascript" : "text/html");
    response.end(script ?? `<!doctype html><title>useChat</title><link rel="icon" href="data:,"><div id="root"></div><script src="${pathname}.js"></script>`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
};

const status = (page, wanted) => page.waitForSelector(`main[data-status="${wanted}"]`);

/** Does something that begins a turn, and waits for its end, which has this status. */
const turn = async (page, begin, wanted = "ready") => {
  const response = page.waitForResponse((response) => response.request().method() === "POST");
  await begin();
  await response;
  await status(page, wanted);
};
const last = (page) => page.textContent("article.assistant >> nth=-1");

const site = await application();
const other = await model(answer);
const options = ["--provider", "openai", "--model", "m", "--base-url", other.url, "--allow-origin", site.url];
const server = await serve(advisor, options, { OPENAI_API_KEY: "none" });
const asking = await serve(advisor, [...options, "--ask", "demo_*"], { OPENAI_API_KEY: "none" });

await run({ name: "useChat", url: site.url, executablePath, folder, expected: "Failed to load resource" }, async ({ open, test }) => {
  for (const profile of Object.keys(LINES)) {
    const id = `chat-${profile}`;
    const query = new URLSearchParams({ api: `${server.url}/api/ui`, id });
    const { page } = await open(`/${profile}?${query}`);
    const sent = [];
    page.on("request", (request) => request.method() === "POST" && sent.push(request.postDataJSON().messages.length));

    await test(`${profile}: a tool that works and one that fails, while the answer streams`, async () => {
      held = gate();
      await ask(page, "How is the weather?");
      await page.waitForSelector('.tool[data-state="input-available"]');
      await status(page, "streaming");
      held.release();
      await status(page, "ready");
      const tool = (state) => page.textContent(`.tool[data-state="${state}"]`);
      expect((await tool("output-available")).includes('"degrees"'), await tool("output-available"));
      expect((await tool("output-error")).startsWith("missing_tool"), await tool("output-error"));
      expect((await last(page)).includes("It is a few degrees in Oslo."), await last(page));
    });

    await test(`${profile}: memory makes the second turn right`, async () => {
      await turn(page, () => ask(page, SECOND));
      expect((await last(page)).includes(`You have asked: How is the weather? ${SECOND}`), await last(page));
      expect(sent.join() === "1,1", `messages of each request: ${sent}`);
    });

    await test(`${profile}: a refusal and an answer that breaks off are errors, and the chat goes on`, async () => {
      for (const text of [FAIL, BREAK]) {
        await turn(page, () => ask(page, text), "error");
        expect((await page.textContent("[role=alert]")).length > 0, "the error has no words");
      }
      expect((await last(page)).includes("This is the beginning"), await last(page));
      await turn(page, () => ask(page, SECOND));
      expect((await last(page)).includes(`You have asked: How is the weather? ${SECOND}`), await last(page));
      expect((await page.$$("[role=alert]")).length === 0, "the error is still shown");
    });

    await test(`${profile}: an answer is made again`, async () => {
      const before = await page.$$("article");
      await turn(page, () => page.click("#regenerate"));
      expect((await page.$$("article")).length === before.length, "there are more messages");
      expect((await last(page)).includes("You have asked: How is the weather?"), await last(page));
    });

    await test(`${profile}: a page that is loaded again joins the turn`, async () => {
      held = gate();
      await ask(page, "How is the weather?");
      await page.waitForSelector('.tool[data-state="input-available"]');
      await page.goto(`${site.url}/${profile}?${query}&resume=true`);
      await page.waitForSelector("article.assistant >> text=Let me look.");
      held.release();
      await page.waitForSelector("article.assistant >> text=It is a few degrees in Oslo.");
      await status(page, "ready");
    });

    await test(`${profile}: a person approves and denies calls, and the message shows how they end`, async () => {
      const { page } = await open(`/${profile}?${new URLSearchParams({ api: `${asking.url}/api/ui`, id: `${id}-asks` })}`);
      const decided = async (button, state, answer) => {
        await turn(page, () => ask(page, "How is the weather?"));
        await page.waitForSelector('.tool[data-state="approval-requested"]');
        await turn(page, () => page.getByRole("button", { name: button }).click());
        await page.waitForSelector(`.tool[data-state="${state}"] >> text=demo_weather`);
        expect((await last(page)).includes(answer), await last(page));
        const articles = await page.$$("article.assistant");
        return articles.length;
      };
      expect((await decided("Approve", "output-available", "It is a few degrees in Oslo.")) === 1, "the answer is another message");
      expect((await decided("Deny", "output-denied", "Then I will not look.")) === 2, "the answer is another message");
      expect((await page.$$('.tool[data-state="approval-requested"], .tool[data-state="approval-responded"]')).length === 0, "a call still waits");
      expect((await page.$$("[role=alert]")).length === 0, "there is an error");
    });

    await test(`${profile}: a page that is loaded again shows the chat, and a call that waits is decided there`, async () => {
      const query = new URLSearchParams({ api: `${asking.url}/api/ui`, id: `${id}-loaded`, load: true });
      const { page } = await open(`/${profile}?${new URLSearchParams({ ...Object.fromEntries(query), load: false })}`);
      await turn(page, () => ask(page, SECOND));
      await turn(page, () => ask(page, "How is the weather?"));
      const shown = await page.textContent("main");
      await page.goto(`${site.url}/${profile}?${query}`);
      await page.waitForSelector("article.assistant >> text=Let me look.");
      expect((await page.textContent("main")) === shown, await page.textContent("main"));
      await turn(page, () => page.getByRole("button", { name: "Approve" }).click());
      await page.waitForSelector('.tool[data-state="output-available"] >> text=demo_weather');
      expect((await last(page)).includes("It is a few degrees in Oslo."), await last(page));
      expect((await page.$$("article")).length === 4, "the answer is another message");
      const decided = await page.textContent("main");
      await page.goto(`${site.url}/${profile}?${query}`);
      await page.waitForSelector("article.assistant >> text=It is a few degrees in Oslo.");
      expect((await page.textContent("main")) === decided, await page.textContent("main"));
    });

    await test(`${profile}: a stopped turn ends at the server, and the chat goes on`, async () => {
      for (const disconnect of ["stop", "continue"]) {
        const id = `chat-${profile}-${disconnect}`;
        const { page } = await open(`/${profile}?${new URLSearchParams({ api: `${server.url}/api/ui`, id, disconnect })}`);
        const conversation = `${server.url}/api/conversations/${id}`;
        const running = async () => (await (await fetch(conversation)).json()).running;
        await ask(page, WAIT);
        await page.waitForSelector("article.assistant >> text=I am waiting.");
        await page.click("#stop");
        await status(page, "ready");
        if (disconnect === "continue") {
          expect(await running(), "the turn has ended with the connection");
          await fetch(`${conversation}/stop`, { method: "POST" });
        }
        while (await running());
        await turn(page, () => ask(page, SECOND));
        expect((await last(page)).includes(`You have asked: ${WAIT} ${SECOND}`), await last(page));
      }
    });
  }
});
await server.close();
await asking.close();
site.close();
other.close();
