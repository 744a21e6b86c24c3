// Failures in the chat page, against `advisor serve`: of the model, within an answer, and of a tool.
// Usage: node failures.mjs ADVISOR CHROMIUM [FOLDER]

import { ask, expect, expectAccessible, idle, last, run } from "./browser.mjs";
import { CUT, call, model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);

/** The statuses of the next answers. */
const refusals = [];
const answer = (messages) => {
  if (refusals.length) return refusals.shift();
  const asked = messages.at(-1);
  if (asked.role === "tool") return pieces("The tool did not work.");
  switch (asked.content) {
    case "Cut.": return [...pieces("This is only the beginning of "), CUT];
    case "Fail.": return [...pieces("Let me look. "), ...call("c1", "demo_weather", ['{"town": ', '"Oslo"}'])];
    default: return pieces(`Heard: ${asked.content}`);
  }
};
const other = await model(answer);
const server = await serve(advisor, ["--provider", "openai", "--model", "m", "--base-url", other.url], { OPENAI_API_KEY: "none" });

const style = (place, name) => place.evaluate((element, name) => getComputedStyle(element)[name], name);

/** Checks that an element has the colour of failures. */
const expectRed = async (page, selector) => {
  const wanted = await page.evaluate(() => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = "var(--bad)";
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  });
  const colour = await style(page.locator(selector).last(), "color");
  expect(colour === wanted, `${selector} has the colour ${colour}`);
};

const articles = (page, count) => page.waitForFunction((count) => document.querySelectorAll("article").length === count, count);
const failed = async (page, words) => {
  await page.waitForSelector(`article:last-child .error[role=alert] >> text=${words}`);
  await idle(page);
  await expectRed(page, "article .error");
};

// Chromium writes each answer with an error status to the console.
await run({ name: "failures", url: `${server.url}/`, executablePath, folder, expected: "the server responded with a status of" }, async ({ open, test, picture }) => {
  const { page } = await open("", { bypassCSP: true });
  const actions = page.locator("article.user").last().locator(".actions");

  await test("a model that refuses is a failure in red, and the message is asked again", async () => {
    refusals.push(400);
    await ask(page, "Are you there?");
    await failed(page, "the model refused the request");
    await page.mouse.move(0, 0);
    await page.waitForFunction(() => getComputedStyle(document.querySelector(".actions")).opacity === "1");
    await picture(page, "failure");
    await expectAccessible(page);
    await actions.getByText("Answer again").click();
    await page.waitForSelector("article:last-child >> text=Heard: Are you there?");
    await idle(page);
    await articles(page, 2);
    expect((await page.$$(".error:not(:empty)")).length === 0, "the failure is still there");
    const users = other.questions.at(-1).filter(({ role }) => role === "user");
    expect(users.length === 1, `the model got ${JSON.stringify(users)}`);
    await page.reload();
    await articles(page, 2);
  });

  await test("a model with too many requests is a failure in red, and the message is edited", async () => {
    refusals.push(...Array(20).fill(429));
    await ask(page, "Still there?");
    await failed(page, "the model is busy");
    refusals.length = 0;
    await actions.getByText("Edit").click();
    expect((await page.inputValue("#text")) === "Still there?", "the text of the message is lost");
    await ask(page, "And now?");
    await page.waitForSelector("article:last-child >> text=Heard: And now?");
    await idle(page);
    await articles(page, 4);
    const users = other.questions.at(-1).filter(({ role }) => role === "user").map(({ content }) => content);
    expect(users.join() === "Are you there?,And now?", `the model got ${users}`);
    await page.reload();
    await articles(page, 4);
  });

  await test("a message that the server has refused is asked again", async () => {
    const away = (route) => route.fulfill({ status: 503, contentType: "application/json", body: '{"error": {"message": "the server is stopping"}}' });
    await page.route(/\/api\/chat\?/, away, { times: 1 });
    await ask(page, "Is it back?");
    await failed(page, "the server is stopping");
    await actions.getByText("Answer again").click();
    await page.waitForSelector("article:last-child >> text=Heard: Is it back?");
    await idle(page);
    await articles(page, 6);
  });

  await test("a conversation that cannot be deleted says so, and stays", async () => {
    const away = (route) => route.fulfill({ status: 503, contentType: "application/json", body: '{"error": {"message": "the store is away"}}' });
    await page.route((address) => address.pathname.startsWith("/api/conversations/"), away, { times: 1 });
    await page.evaluate(() => (window.confirm = () => true));
    await page.click("#delete");
    await failed(page, "the store is away");
    await articles(page, 7);
    await page.reload();
    await articles(page, 6);
  });

  await test("an answer that is cut keeps its text, with a failure in red", async () => {
    await ask(page, "Cut.");
    await failed(page, "the answer broke off");
    expect((await last(page)).includes("only the beginning"), await last(page));
    await expectAccessible(page);
    await actions.getByText("Answer again").click();
    await page.waitForSelector("article:last-child .error");
    await idle(page);
    await articles(page, 8);
  });

  await test("a tool that fails is marked in red, and the answer goes on", async () => {
    await ask(page, "Fail.");
    await page.waitForSelector("article:last-child >> text=The tool did not work.");
    await idle(page);
    const tool = page.locator("details.tool.failed").last();
    expect((await tool.locator(".what").textContent()) === "Tool failed: demo_weather", await tool.textContent());
    expect((await tool.locator(".state").textContent()) === "failed", await tool.textContent());
    for (const part of [".what", ".state", ".result"]) await expectRed(page, `.tool.failed ${part}`);
    expect((await page.$$("article:last-child .error")).length === 0, "the failure of the tool is one of the answer");
    await tool.locator("summary").click();
    await expectAccessible(page);
  });

  for (const [name, options] of [
    ["failures", {}],
    ["failures-dark", { colorScheme: "dark" }],
    ["failures-narrow", { viewport: { width: 390, height: 800 } }],
    ["failures-narrow-dark", { viewport: { width: 390, height: 800 }, colorScheme: "dark" }],
  ]) {
    await test(`nothing serious for accessibility, and no overflow, ${name}`, async () => {
      const { context, page: shown } = await open(new URL(page.url()).hash, { ...options, bypassCSP: true });
      await shown.waitForSelector("details.tool.failed");
      await shown.locator("details.tool summary").last().click();
      refusals.push(400);
      await ask(shown, "Once more?");
      await failed(shown, "the model refused the request");
      await picture(shown, name);
      await expectAccessible(shown);
      await context.close();
    });
  }
});
await server.close();
other.close();
