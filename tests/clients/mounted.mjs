// The chat page under a path of another application, against the example `chat_page`.
// Usage: node mounted.mjs EXAMPLE CHROMIUM [FOLDER]

import { ask, expect, hold, idle, last, run } from "./browser.mjs";
import { started } from "./serve.mjs";

const [example, executablePath, folder] = process.argv.slice(2);
const server = await started(example, ["127.0.0.1:0"]);

// Chromium writes each answer with an error status to the console.
await run({ name: "mounted", url: server.url, executablePath, folder, expected: "503" }, async ({ open, test, picture }) => {
  for (const path of ["/assistant", "/assistant/"]) {
    await test(`a conversation at ${path}, that a reload finds again`, async () => {
      const { page } = await open(path);
      const outside = [];
      page.on("request", (request) => request.url().startsWith(`${server.url}/assistant`) || outside.push(request.url()));
      await ask(page, "Who are you?");
      await page.waitForSelector(".assistant .markdown em");
      await idle(page);
      await ask(page, "And now?");
      await page.waitForFunction(() => document.querySelectorAll(".assistant .markdown em").length === 2);
      await idle(page);
      expect((await last(page)).includes("message 2"), await last(page));
      await page.reload();
      await page.waitForFunction(() => document.querySelectorAll("article").length === 4);
      await page.waitForSelector("#conversations a[aria-current]");
      expect(new URL(page.url()).pathname === path, `the page has moved to ${page.url()}`);
      expect((await page.locator("#send").evaluate((button) => getComputedStyle(button).borderRadius)) !== "0px", "no style");
      expect(outside.length === 0, `asked outside its path for ${outside}`);
      await picture(page, "mounted");
    });
  }

  await test("a conversation that is opened by its link is read once, and the list stays", async () => {
    const { page } = await open("/assistant");
    await page.waitForFunction(() => document.querySelectorAll("#conversations a").length === 2);
    await page.evaluate(() => (window.link = document.querySelector("#conversations a")));
    const { held, release } = await hold(page, /conversations\/[^/]+\?view=page/);
    const changed = page.evaluate(() => new Promise((done) => addEventListener("hashchange", () => setTimeout(done))));
    await page.locator("#conversations a").first().focus();
    await page.keyboard.press("Enter");
    await changed;
    release();
    await page.waitForSelector("#conversations a[aria-current]");
    await page.waitForFunction(() => document.querySelectorAll("article").length === 4);
    await page.waitForLoadState("networkidle");
    expect(held.length === 1, `read ${held.length} times`);
    expect((await page.$$("article")).length === 4, "messages are shown twice");
    expect(await page.evaluate(() => document.activeElement === window.link), "the link has lost the focus");
  });

  await test("a conversation that cannot be read says so", async () => {
    const { page } = await open("/assistant");
    const unreadable = { status: 503, contentType: "application/json", body: '{"error": {"message": "the store is away"}}' };
    await page.route(/conversations\/[^/]+\?view=page/, (route) => route.fulfill(unreadable));
    await page.locator("#conversations a").first().click();
    await page.waitForSelector("article .error >> text=the store is away");
    await page.unroute(/conversations\/[^/]+\?view=page/);
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll("article").length === 4);
    expect((await page.$$("article .error")).length === 0, "the error is still there");
  });

  await test("a conversation is deleted", async () => {
    const { page } = await open("/assistant");
    await page.waitForFunction(() => document.querySelectorAll("#conversations a").length === 2);
    await page.locator("#conversations a").first().click();
    await page.waitForFunction(() => document.querySelectorAll("article").length === 4);
    await page.evaluate(() => (window.confirm = () => true));
    await page.click("#delete");
    await page.waitForFunction(() => document.querySelectorAll("#conversations a").length === 1);
  });
});
await server.close();
