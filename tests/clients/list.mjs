// The list of many conversations beside the chat page, against `advisor serve`.
// Usage: node list.mjs ADVISOR CHROMIUM [FOLDER]

import { ask, expect, expectAccessible, idle, run } from "./browser.mjs";
import { model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);
const COUNT = 130;

const other = await model((messages) => pieces(`Heard: ${messages.at(-1).content}`));
const server = await serve(advisor, ["--provider", "openai", "--model", "m", "--base-url", other.url], { OPENAI_API_KEY: "none" });

const id = (number) => `00000000-0000-7000-8000-${String(number).padStart(12, "0")}`;
for (let number = 1; number <= COUNT; number++) {
  const body = JSON.stringify({ message: `Question ${number}`, conversation: id(number) });
  const response = await fetch(`${server.url}/api/chat`, { method: "POST", headers: { "content-type": "application/json" }, body });
  await response.text();
}

await run({ name: "list", url: `${server.url}/`, executablePath, folder, expected: "ERR_INTERNET_DISCONNECTED" }, async ({ open, test, picture }) => {
  const { context, page } = await open("", { bypassCSP: true });
  const titles = () => page.locator("#conversations a").allTextContents();
  const listed = (count) => page.waitForFunction((count) => document.querySelectorAll("#conversations a").length === count, count);
  const more = page.getByRole("button", { name: "More" });
  let lists = 0;
  page.on("request", (request) => request.url().includes("/api/conversations?") && lists++);

  await test("the list begins with the newest conversations", async () => {
    await listed(100);
    expect((await titles())[0] === `Question ${COUNT}` && (await titles())[99] === "Question 31", `${(await titles())[0]} is the first`);
    await picture(page, "list");
    await expectAccessible(page);
  });

  await test("the rest comes on demand, and by keyboard", async () => {
    await context.setOffline(true);
    await more.focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("#side [role=alert] >> text=the server cannot be reached");
    await context.setOffline(false);
    await page.keyboard.press("Enter");
    await listed(COUNT);
    expect((await titles()).at(-1) === "Question 1", `${(await titles()).at(-1)} is the last`);
    expect(!(await more.isVisible()) && (await page.textContent("#more-error")) === "", "more is offered at the end");
    expect((await page.evaluate(() => document.activeElement.textContent)) === "Question 1", "the focus is lost");
  });

  await test("a turn asks for one page, and the others stay", async () => {
    lists = 0;
    const read = page.waitForResponse(/conversations\?/);
    await ask(page, "The newest of all");
    await idle(page);
    await (await read).finished();
    await listed(COUNT + 1);
    expect((await titles())[0] === "The newest of all", `${(await titles())[0]} is the first`);
    expect((await titles()).at(-1) === "Question 1", `${(await titles()).at(-1)} is the last`);
    expect((await page.textContent("#title")) === "The newest of all", "the title is missing");
    expect(lists === 1, `${lists} requests`);
  });

  await test("a deleted conversation of a later page leaves the list", async () => {
    await page.locator("#conversations a").last().click();
    await page.waitForSelector("article:last-child >> text=Heard: Question 1");
    await page.evaluate(() => (window.confirm = () => true));
    await page.click("#delete");
    await listed(COUNT);
    expect((await titles()).at(-1) === "Question 2", `${(await titles()).at(-1)} is the last`);
  });

  await test("a deletion leaves the mark of the conversation that is open by then", async () => {
    const current = () => page.locator("#conversations a[aria-current]");
    await page.locator("#conversations a").last().click();
    await page.waitForSelector("article:last-child >> text=Heard: Question 2");
    let release;
    const held = new Promise((resolve) => (release = resolve));
    const path = /\/api\/conversations\/[^/?]+$/;
    await page.route(path, async (route) => {
      if (route.request().method() === "DELETE") await held;
      await route.continue();
    });
    await page.click("#delete");
    await page.locator("#conversations a", { hasText: "Question 99" }).click();
    await current().filter({ hasText: "Question 99" }).waitFor();
    release();
    await listed(COUNT - 1);
    expect((await current().allTextContents()).join() === "Question 99", "another conversation is marked");
    await page.unroute(path);
  });

  await test("a conversation that is not in the list has its question as its title", async () => {
    const { context: another, page: old } = await open(`#${id(3)}`);
    await old.waitForFunction(() => document.querySelector("#title").textContent === "Question 3");
    await another.close();
  });
});
await server.close();
other.close();
