// The chat page on a server with tokens.
// Usage: node token.mjs ADVISOR CHROMIUM [FOLDER]

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ask, expect, expectAccessible, expectFocus, hold, idle, last, run } from "./browser.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);
const secrets = await mkdtemp(join(tmpdir(), "advisor-"));
const file = join(secrets, "tokens");
await writeFile(file, "ann the-token-of-ann\nbob the-token-of-bob\n");
const server = await serve(advisor, ["--tokens", file]);

const isOpen = (page) => page.locator("#access").isVisible();
const opened = (page) => page.waitForSelector("#access[open]");
const closed = (page) => page.waitForSelector("#access", { state: "hidden" });

/** Enters a token by keyboard. */
const enter = async (page, token) => {
  await opened(page);
  await page.fill("#token", token);
  await page.keyboard.press("Enter");
};
const errorShown = (page, words) => page.waitForFunction((text) => document.querySelector("#access-error").textContent.includes(text), words);

// Chromium writes each answer with 401 to the console.
await run({ name: "token", url: `${server.url}/`, executablePath, folder, expected: "401" }, async ({ open, test, picture }) => {
  const { page } = await open();
  const without = [];
  page.on("request", (request) => {
    const isData = /\/(api|v1)\//.test(request.url());
    if (isData && request.headers().authorization !== "Bearer the-token-of-ann") without.push(request.url());
  });

  await test("a form asks for the token, with the focus in it", async () => {
    await opened(page);
    await expectFocus(page, "token");
    await picture(page, "token");
  });

  await test("a wrong token is an error, and is not kept", async () => {
    for (const token of ["wrong", "wröng…", "   "]) {
      await enter(page, token);
      await errorShown(page, "does not take this token");
      expect((await page.getAttribute("#token", "aria-invalid")) === "true", "the field is not marked");
      await page.evaluate(() => (document.querySelector("#access-error").textContent = ""));
    }
    await enter(page, "wrong");
    await errorShown(page, "does not take this token");
    expect((await page.evaluate(() => sessionStorage.length + localStorage.length)) === 0, "a wrong token is kept");
    await picture(page, "token-wrong");
  });

  await test("the right token goes with every request, also with streams", async () => {
    await enter(page, "the-token-of-ann");
    await closed(page);
    without.length = 0;
    await ask(page, "How is the weather?");
    await page.waitForFunction(() => document.querySelectorAll("details.tool").length === 2);
    // A reload joins the running turn.
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll("details[data-ended]").length === 2);
    await idle(page);
    expect((await last(page)).includes("degrees"), await last(page));
    await page.waitForSelector("#conversations a[aria-current]");
    expect(without.length === 0, `without the token: ${without}`);
    expect(!(await isOpen(page)), "the form came back after a reload");
    expect((await page.evaluate(() => JSON.stringify([localStorage, document.cookie, location.href]))).includes("the-token-of-ann") === false, "the token is kept elsewhere");
  });

  await test("another tab has no token", async () => {
    const other = await page.context().newPage();
    await other.goto(page.url());
    await opened(other);
    await other.close();
  });

  await test("a request waits for the token", async () => {
    await page.evaluate(() => sessionStorage.clear());
    await ask(page, "Are you still there?");
    await enter(page, "the-token-of-ann");
    await closed(page);
    await page.waitForFunction(() => document.querySelectorAll("article").length === 4);
    await idle(page);
    expect((await last(page)).includes("message 2"), await last(page));
  });

  await test("a form that is cancelled is an error, and the next request asks again", async () => {
    await page.evaluate(() => sessionStorage.clear());
    await ask(page, "And now?");
    await opened(page);
    await page.keyboard.press("Escape");
    await closed(page);
    await page.waitForSelector("article:last-child .error >> text=needs a token");
    await idle(page);
    await page.waitForLoadState("networkidle");
    expect(!(await isOpen(page)), "the form came back by itself");
    await ask(page, "And now?");
    await opened(page);
    await page.click("#access-cancel");
    await closed(page);
  });

  await test("a forgotten token leaves nothing on the page", async () => {
    await page.reload();
    const { held, release } = await hold(page, /conversations\?view=page/);
    await enter(page, "the-token-of-ann");
    await closed(page);
    await page.waitForSelector("article");
    await page.fill("#text", "a draft");
    // The list that was asked for with the token comes after it is forgotten.
    if (!held.length) await page.waitForRequest(/conversations\?view=page/);
    const listed = page.waitForResponse(/conversations\?view=page/);
    await page.focus("#forget");
    await page.keyboard.press("Enter");
    release();
    await (await listed).finished();
    await opened(page);
    expect((await page.evaluate(() => sessionStorage.length)) === 0, "the token is still there");
    expect((await page.$$("article, #conversations a")).length === 0, "messages or conversations are left");
    expect((await page.inputValue("#text")) === "", "a draft is left");
    expect(new URL(page.url()).hash === "", "the address names the conversation");
    expect(!(await page.locator("#forget").isVisible()), "there is nothing to forget");
    const listOfBob = () =>
      page.waitForResponse((response) => response.url().includes("/api/conversations?") && response.request().headers().authorization === "Bearer the-token-of-bob");
    const first = listOfBob();
    await enter(page, "the-token-of-bob");
    await closed(page);
    await page.waitForSelector("#forget", { state: "visible" });
    await (await first).finished();
    const own = listOfBob();
    await page.reload();
    expect((await (await own).json()).conversations.length === 0, "bob sees a conversation of ann");
  });

  await test("a user whom an application does not know is asked to log in there", async () => {
    const { context, page: other } = await open("", { bypassCSP: true });
    await other.route(`${server.url}/`, async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replace('data-login="token"', 'data-login="application"');
      await route.fulfill({ response, body });
    });
    await other.reload();
    await opened(other);
    expect((await other.textContent("#access-title")) === "Not logged in", "the form has another title");
    expect((await other.textContent("#access-about")).startsWith("Log in to the application"), "the form has other words");
    await picture(other, "login");
    await expectAccessible(other);
    await other.click("#access-cancel");
    await closed(other);
    await ask(other, "Am I known?");
    await opened(other);
    await other.click("#access-cancel");
    await other.waitForSelector("article:last-child .error >> text=Log in to the application");
    await context.close();
  });

  for (const [name, options] of [
    ["token-light", {}],
    ["token-dark", { colorScheme: "dark" }],
    ["token-narrow", { viewport: { width: 390, height: 800 } }],
    ["token-narrow-dark", { viewport: { width: 390, height: 800 }, colorScheme: "dark" }],
  ]) {
    await test(`nothing serious for accessibility, and no overflow, ${name}`, async () => {
      const { page: other } = await open("", { ...options, bypassCSP: true });
      await enter(other, "wrong");
      await errorShown(other, "does not take");
      await picture(other, name);
      await expectAccessible(other);
      await enter(other, "the-token-of-ann");
      await closed(other);
      await other.waitForSelector("#conversations a", { state: "attached" });
      if (await other.locator("#menu").isVisible()) await other.click("#menu");
      await picture(other, `${name}-forget`);
      await expectAccessible(other);
      await other.context().close();
    });
  }
});
await server.close();
await rm(secrets, { recursive: true });
