// Turns with decisions of a person in the chat page, their failures and what is shown after them, against `advisor serve --ask`.
// Usage: node decisions.mjs ADVISOR CHROMIUM [FOLDER]

import { ask, expect, expectAccessible, expectFocus, hold, idle, run } from "./browser.mjs";
import { call, gate, model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);

/** Holds back answers to the results of "Wait.". */
let held = gate();
/** Resolves when the model has the results of "Wait.". */
let reached = gate();
const weather = (id, city) => call(id, "demo_weather", [`{"city": "${city}"}`]);
const answer = (messages) => {
  const asked = messages.findLast(({ role }) => role === "user").content;
  if (messages.at(-1).role !== "tool") return asked.startsWith("Hello") ? pieces(`Heard: ${asked}`) : weather("c1", "Oslo");
  switch (asked) {
    case "Refuse.": return 400;
    case "Again.": return [...pieces("Once more. "), ...weather("c9", "Rome")];
    case "Wait.": reached.release(); return [held.opened, ...pieces("Here it is.")];
    default: return pieces(`Result: ${messages.at(-1).content}`);
  }
};
const other = await model(answer);
const options = ["--provider", "openai", "--model", "m", "--base-url", other.url, "--ask", "demo_*"];
const server = await serve(advisor, options, { OPENAI_API_KEY: "none" });

const CHAT = /\/api\/chat\?/;
const WAITING = /\/api\/conversations\/[^/?]+\?limit=1$/;
const READ = /\/api\/conversations\/[^/?]+\?view=page$/;
const refusal = (status, message) => ({ status, json: { error: { message } } });
const articles = (page) => page.locator("article .body").allTextContents();

await run({ name: "decisions", url: `${server.url}/`, executablePath, folder, expected: "Failed to load resource" }, async ({ open, test, picture }) => {
  /** Runs a test in a page that asks for a decision about the call of a question. */
  const deciding = (what, question, body) =>
    test(what, async () => {
      held = gate();
      reached = gate();
      const { context, page } = await open("", { bypassCSP: true });
      const form = page.getByRole("form", { name: "Approval" });
      await ask(page, question);
      await form.waitFor();
      const approve = async () => {
        await form.getByLabel("Approve").check();
        await form.getByRole("button", { name: "Continue" }).click();
      };
      await body({ page, form, approve });
      await context.close();
    });
  const done = (page) => page.locator(".tool[data-state=done]").waitFor();
  const error = (page, words) => page.locator("article .error", { hasText: words }).waitFor();
  const count = async (place, wanted, what) => expect((await place.count()) === wanted, `${what}: ${await place.count()}`);

  await deciding("a failure of the model stays beside the results of the tools", "Refuse.", async ({ page, form, approve }) => {
    await approve();
    await done(page);
    await idle(page);
    await error(page, "the model refused the request");
    await count(form, 0, "the form is still there");
    await expectAccessible(page);
    await picture(page, "decision-failed");
  });

  await deciding("a message in place of a decision that fails in its stream brings the form back", "Wait.", async ({ page, form }) => {
    const body = 'data: {"type":"error","error":"it has failed","code":"provider"}\n\ndata: [DONE]\n\n';
    await page.route(CHAT, (route) => route.fulfill({ contentType: "text/event-stream", body }), { times: 1 });
    await ask(page, "Hello.");
    await error(page, "it has failed");
    await form.waitFor();
    await ask(page, "Hello again.");
    await page.locator("article >> text=Heard: Hello again.").waitFor();
    await idle(page);
    await count(form, 0, "the form is still there");
  });

  await deciding("an answer that is asked for again, and refused, brings the form back", "Wait.", async ({ page, form, approve }) => {
    await page.route(CHAT, (route) => route.fulfill(refusal(429, "the server is busy")), { times: 1 });
    await page.getByRole("button", { name: "Answer again" }).click();
    await error(page, "the server is busy");
    await form.waitFor();
    held.release();
    await approve();
    await page.locator("article >> text=Here it is.").waitFor();
    await idle(page);
  });

  await deciding("an edit that is open ends with a decision", "How is it?", async ({ page, approve }) => {
    await page.getByRole("button", { name: "Edit" }).click();
    await page.fill("#text", "Hello instead.");
    await approve();
    expect(!(await page.locator("#editing").isVisible()), "the edit goes on");
    await done(page);
    await idle(page);
    await page.focus("#text");
    await page.keyboard.press("Enter");
    await page.locator("article >> text=Heard: Hello instead.").waitFor();
    await idle(page);
    const before = await articles(page);
    await page.reload();
    await page.locator("article >> text=Heard: Hello instead.").waitFor();
    expect(String(await articles(page)) === String(before), `before the reload: ${JSON.stringify(before)}`);
  });

  await deciding("a stop that the server gets late is waited for", "Wait.", async ({ page, form, approve }) => {
    const { release: stop } = await hold(page, /\/stop$/);
    // The page gets no head of the answer.
    await page.route(CHAT, (route) => route.fetch().catch(() => {}), { times: 1 });
    const running = page.waitForResponse(async (response) => /conversations\/[^/?]+\?/.test(response.url()) && (await response.json()).running);
    await approve();
    await reached.opened;
    await page.click("#stop");
    await running;
    stop();
    await done(page);
    await idle(page);
    await count(form, 0, "a call waits that has run");
    held.release();
  });

  await deciding("a turn that does not stop is joined again", "Wait.", async ({ page, approve }) => {
    await page.route(/\/stop$/, (route) => route.fulfill({ status: 204 }));
    await page.route(CHAT, (route) => route.fetch().catch(() => {}), { times: 1 });
    await approve();
    await reached.opened;
    await page.click("#stop");
    await idle(page);
    await page.locator("#stop").waitFor();
    held.release();
    await page.locator("article >> text=Here it is.").waitFor();
    await done(page);
    await idle(page);
  });

  await test("what waits is read again, and by a button in the end", async () => {
    const { context, page } = await open("", { bypassCSP: true });
    const form = page.getByRole("form", { name: "Approval" });
    await page.route(WAITING, (route) => route.fulfill({ status: 503 }), { times: 1 });
    await ask(page, "How is it?");
    await form.waitFor();
    await page.route(WAITING, (route) => route.fulfill(refusal(500, "an internal error")), { times: 1 });
    await page.getByRole("button", { name: "Answer again" }).click();
    const failure = page.locator(".approval .error", { hasText: "cannot be read: an internal error" });
    await failure.waitFor();
    await expectAccessible(page);
    await picture(page, "decision-unread");
    await page.getByRole("button", { name: "Try again" }).focus();
    await page.keyboard.press("Enter");
    await form.waitFor();
    await count(failure, 0, "the failure is still there");
    await expectFocus(page, "messages");
    await context.close();
  });

  await deciding("results that cannot be read after a decision are read by a button", "How is it?", async ({ page, approve }) => {
    await page.route(READ, (route) => route.fulfill(refusal(500, "an internal error")), { times: 1 });
    await approve();
    await page.getByRole("button", { name: "Try again" }).click();
    await done(page);
    await count(page.locator(".approval"), 0, "the failure is still there");
  });

  await test("calls that are read late are not asked about", async () => {
    const { context, page } = await open();
    const late = gate();
    const read = gate();
    let reads = 0;
    await page.route(WAITING, async (route) => {
      reads += 1;
      const response = await route.fetch();
      read.release();
      await late.opened;
      await route.fulfill({ response });
    });
    await ask(page, "How is it?");
    await read.opened;
    await page.evaluate(() => {
      window.forms = 0;
      const count = (changes) => changes.forEach(({ addedNodes }) => [...addedNodes].forEach(({ className }) => (window.forms += className === "approval")));
      new MutationObserver(count).observe(document.querySelector("#messages"), { childList: true });
    });
    const aborted = page.waitForEvent("requestfailed", (request) => WAITING.test(request.url()));
    await ask(page, "Hello.");
    await page.locator("article >> text=Heard: Hello.").waitFor();
    await idle(page);
    await aborted;
    late.release();
    await ask(page, "Hello again.");
    await page.locator("article >> text=Heard: Hello again.").waitFor();
    await idle(page);
    expect((await page.evaluate(() => window.forms)) === 0, "the page asks about a call that has been answered");
    expect(reads === 1, `what waits is read ${reads} times`);
    await context.close();
  });

  await deciding("a further question is asked once", "Again.", async ({ page, form, approve }) => {
    await page.evaluate(() => {
      window.forms = [];
      const note = (changes) => {
        for (const { addedNodes, removedNodes } of changes) {
          for (const { className } of addedNodes) if (className === "approval") window.forms.push("added");
          for (const { className } of removedNodes) if (className === "approval") window.forms.push("removed");
        }
      };
      new MutationObserver(note).observe(document.querySelector("#messages"), { childList: true });
    });
    await approve();
    await done(page);
    await idle(page);
    await page.waitForLoadState("networkidle");
    const forms = await page.evaluate(() => window.forms.join());
    expect(forms === "removed,added", `the form was ${forms}`);
    await count(form, 1, "other forms");
  });

  await deciding("a lost call needs no decision", "How is it?", async ({ page, form }) => {
    const lost = async (route) => {
      const response = await route.fetch();
      const body = await response.json();
      await route.fulfill({ response, json: { ...body, waiting: body.waiting.map((call) => ({ ...call, started: true })) } });
    };
    await page.route(READ, lost, { times: 1 });
    await page.reload();
    await form.locator("text=its result is lost").waitFor();
    await count(form.locator("fieldset"), 0, "there is a choice");
    await expectAccessible(page);
    const sent = page.waitForRequest(CHAT);
    await form.getByRole("button", { name: "Continue" }).click();
    const { decisions } = JSON.parse((await sent).postData());
    expect(JSON.stringify(decisions) === "[]", `the page decided ${JSON.stringify(decisions)}`);
  });

  await test("the focus and the messages before stay, and the turn of the decision is inspected", async () => {
    held = gate();
    reached = gate();
    const { context, page } = await open();
    await page.keyboard.press("Alt+I");
    await ask(page, "Hello.");
    await page.locator("article >> text=Heard: Hello.").waitFor();
    await idle(page);
    await ask(page, "Wait.");
    await page.getByLabel("Approve").check();
    const first = await page.locator("article").first().elementHandle();
    const inspected = [];
    page.on("request", (request) => inspected.push(...(request.url().match(/(?<=\/turns\/)[^/]+(?=\/journal)/) ?? [])));
    const sent = page.waitForRequest(CHAT);
    await page.getByRole("button", { name: "Continue" }).click();
    const { turn } = JSON.parse((await sent).postData());
    await reached.opened;
    await page.locator(".tool summary").focus();
    held.release();
    await done(page);
    await idle(page);
    await expectFocus(page, "messages");
    expect(await first.evaluate((article) => article.isConnected), "the messages before are replaced");
    await page.waitForLoadState("networkidle");
    expect(inspected.at(-1) === turn, "another turn is inspected");
    await page.getByRole("button", { name: "Inspect" }).nth(1).click();
    await page.reload();
    await page.keyboard.press("Alt+I");
    await page.locator("article.assistant .actions").getByRole("button", { name: "Inspect" }).click();
    await page.locator("#journal-source", { hasText: turn }).waitFor();
    await context.close();
  });
});
await server.close();
other.close();
