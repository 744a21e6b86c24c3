// Conversations that are opened while a turn begins, runs or ends, against `advisor serve`.
// Usage: node opening.mjs ADVISOR CHROMIUM [FOLDER]

import { ask, expect, expectAccessible, hold, idle, last, run } from "./browser.mjs";
import { gate, model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);

let held = gate();
const answer = (messages) => {
  const asked = messages.at(-1).content;
  return asked === "Half." ? [...pieces("This is one half, "), held.opened, ...pieces("and this the other.")] : pieces(`Heard: ${asked}`);
};
const other = await model(answer);
const server = await serve(advisor, ["--provider", "openai", "--model", "m", "--base-url", other.url], { OPENAI_API_KEY: "none" });

const READ = /\/api\/conversations\/[^/?]+\?/;
const STOP = /\/stop$/;
const STREAM = /\/stream\?/;
/** The answer to a page that cannot join a turn any more. */
const TOO_FAR_BEHIND = { status: 404, json: { error: { message: "too far behind" } } };

/** Asks in another tab. Returns when the turn runs, with a promise of its end. */
const askElsewhere = async (message, conversation, turn) => {
  held = gate();
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${server.url}/api/chat`, { method: "POST", headers, body: JSON.stringify({ message, conversation, turn }) });
  const ended = response.text();
  if (message !== "Half.") await ended;
  return { ended };
};
const articles = (page) => page.locator("article .body").allTextContents();
const shown = (page, count) => page.waitForFunction((count) => document.querySelectorAll("article").length === count, count);
const text = (page, words) => page.waitForSelector(`article:last-child >> text=${words}`);
const expectArticles = async (page, ...expected) => {
  await shown(page, expected.length);
  expect(String(await articles(page)) === String(expected), `the page shows ${JSON.stringify(await articles(page))}`);
};

await run({ name: "opening", url: `${server.url}/`, executablePath, folder, expected: "Failed to load resource" }, async ({ open, test, picture }) => {
  await test("a message that is sent while the conversation opens comes behind it, once", async () => {
    await askElsewhere("One.", "early", "t1");
    const { context, page } = await open();
    const { held: reads, release } = await hold(page, READ);
    const asked = page.waitForRequest(READ);
    await page.goto(`${server.url}/#early`);
    await asked;
    await ask(page, "Two.");
    await ask(page, "Two.");
    expect((await page.inputValue("#text")) === "Two.", "the text is gone before it is sent");
    release();
    await text(page, "Heard: Two.");
    await idle(page);
    await expectArticles(page, "One.", "Heard: One.", "Two.", "Heard: Two.");
    expect(other.questions.filter((messages) => messages.at(-1).content === "Two.").length === 1, "it is sent twice");
    expect(reads.length === 1, `the conversation is read ${reads.length} times`);
    await context.close();
  });

  await test("a message for a conversation that opens is not sent to another one", async () => {
    await askElsewhere("One.", "left", "t1");
    const { context, page } = await open();
    const { release } = await hold(page, READ);
    const asked = page.waitForRequest(READ);
    await page.goto(`${server.url}/#left`);
    await asked;
    await ask(page, "For the first one.");
    const aborted = page.waitForEvent("requestfailed", (request) => READ.test(request.url()));
    await page.click("#new");
    await aborted;
    release();
    expect((await page.inputValue("#text")) === "For the first one.", "the draft is lost");
    expect((await articles(page)).length === 0, `the page shows ${await articles(page)}`);
    await context.close();
  });

  await test("a turn that ends between the two requests is shown whole", async () => {
    const { ended } = await askElsewhere("Half.", "ends", "t1");
    const { context, page } = await open();
    const { release } = await hold(page, STREAM);
    const asked = page.waitForRequest(STREAM);
    await page.goto(`${server.url}/#ends`);
    await asked;
    held.release();
    await ended;
    release();
    await text(page, "and this the other.");
    await idle(page);
    await expectArticles(page, "Half.", "This is one half, and this the other.");
    await context.close();
  });

  await test("a turn that begins between the two requests replaces no other answer", async () => {
    await askElsewhere("One.", "begins", "t1");
    const { context, page } = await open();
    const { release } = await hold(page, STREAM);
    const read = page.waitForResponse(READ);
    await page.goto(`${server.url}/#begins`);
    await (await read).finished();
    await askElsewhere("Half.", "begins", "t2");
    release();
    await shown(page, 2);
    await page.waitForLoadState("networkidle");
    await expectArticles(page, "One.", "Heard: One.");
    held.release();
    await context.close();
  });

  await test("a turn whose question is not stored yet: the question comes with the end", async () => {
    await askElsewhere("One.", "unstored", "t1");
    const { ended } = await askElsewhere("Half.", "unstored", "t2");
    const { context, page } = await open();
    const without = async (route) => {
      const response = await route.fetch();
      const body = await response.json();
      await route.fulfill({ response, json: { ...body, messages: body.messages.filter(({ turn }) => turn !== "t2") } });
    };
    await page.route(READ, without, { times: 1 });
    await page.goto(`${server.url}/#unstored`);
    await text(page, "This is one half,");
    await expectArticles(page, "One.", "Heard: One.", "This is one half, ");
    held.release();
    await ended;
    await shown(page, 4);
    await expectArticles(page, "One.", "Heard: One.", "Half.", "This is one half, and this the other.");
    await context.close();
  });

  await test("a proxy without a server is asked again for the stream", async () => {
    const { ended } = await askElsewhere("Half.", "proxy", "t1");
    const { context, page } = await open();
    await page.route(STREAM, (route) => route.fulfill({ status: 502 }), { times: 2 });
    await page.goto(`${server.url}/#proxy`);
    await text(page, "This is one half,");
    held.release();
    await ended;
    await idle(page);
    await expectArticles(page, "Half.", "This is one half, and this the other.");
    await context.close();
  });

  await test("a stream that the server refuses: memory is read until the turn ends", async () => {
    const { ended } = await askElsewhere("Half.", "refused", "t1");
    const { context, page } = await open("", { bypassCSP: true });
    let joins = 0;
    await page.route(STREAM, (route) => {
      joins += 1;
      return route.fulfill(TOO_FAR_BEHIND);
    });
    await page.goto(`${server.url}/#refused`);
    await text(page, "The answer goes on");
    expect(!(await last(page)).includes("interrupted"), `a turn that runs is interrupted: ${await last(page)}`);
    expect(await page.locator("#stop").isVisible(), "the turn cannot be stopped");
    await picture(page, "refused");
    await expectAccessible(page);
    // First a page of a proxy, then no connection.
    let failures = 0;
    const fail = (route) => (failures++ ? route.abort("connectionfailed") : route.fulfill({ contentType: "text/html", body: "<p>Log in.</p>" }));
    await page.route(READ, fail, { times: 7 });
    await text(page, "There is no connection");
    // The page tries again at once.
    await page.evaluate(() => setInterval(() => dispatchEvent(new Event("online")), 50));
    held.release();
    await ended;
    await text(page, "and this the other.");
    await idle(page);
    expect(failures === 7, `memory was read ${failures} times without an answer`);
    expect(joins === 1, `the server was asked ${joins} times`);
    await context.close();
  });

  await test("a stream that the server refuses: the turn is stopped while memory does not answer", async () => {
    const { ended } = await askElsewhere("Half.", "hangs", "t1");
    const { context, page } = await open();
    await page.route(STREAM, (route) => route.fulfill(TOO_FAR_BEHIND));
    await page.goto(`${server.url}/#hangs`);
    await text(page, "The answer goes on");
    const { release } = await hold(page, READ);
    await page.waitForRequest(READ);
    await page.route(STOP, (route) => route.abort("connectionfailed"));
    await page.click("#stop");
    await text(page, "This answer was stopped.");
    await idle(page);
    release();
    held.release();
    await ended;
    await context.close();
  });

  await test("a stream that the server refuses, and memory has nothing of the turn: its rest is lost", async () => {
    const { ended } = await askElsewhere("Half.", "lost", "t1");
    const { context, page } = await open();
    await page.route(STREAM, async (route) => {
      await page.route(READ, (read) => read.fulfill({ status: 404, json: { error: { message: "no conversation" } } }));
      await route.fulfill(TOO_FAR_BEHIND);
    });
    await page.goto(`${server.url}/#lost`);
    await text(page, "the server does not have the rest of this answer");
    await idle(page);
    held.release();
    await ended;
    await context.close();
  });

  await test("a turn that has failed before its answer is a failure, and not asked for again", async () => {
    const { ended } = await askElsewhere("Half.", "failed", "t1");
    const { context, page } = await open();
    let joins = 0;
    await page.route(STREAM, (route) => {
      joins += 1;
      return route.fulfill({ status: 502, json: { error: { message: "the model cannot be reached", code: "connection" } } });
    });
    await page.goto(`${server.url}/#failed`);
    await page.waitForSelector("article:last-child .error >> text=the model cannot be reached");
    await idle(page);
    expect(joins === 1, `the server was asked ${joins} times`);
    held.release();
    await ended;
    await context.close();
  });

  await test("an address that names nothing opens a new conversation", async () => {
    const { context, page } = await open("#%");
    await page.waitForSelector("#conversations a");
    await ask(page, "From a broken address.");
    await text(page, "Heard: From a broken address.");
    await idle(page);
    await context.close();
  });
});
await server.close();
other.close();
