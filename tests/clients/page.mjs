// The chat page in a headless Chromium, against `advisor serve`.
// Usage: node page.mjs URL CHROMIUM [FOLDER]   with a folder, screenshots are written to it.

import { readFile } from "node:fs/promises";

import { ask, expect, expectAccessible, idle, last, run } from "./browser.mjs";

const [url, executablePath, folder] = process.argv.slice(2);

await run({ name: "page", url, executablePath, folder, expected: "ERR_INTERNET_DISCONNECTED" }, async ({ open, test, picture }) => {
  const { context, page } = await open();

  await test("reasoning streams before the answer", async () => {
    await ask(page, "How is the weather?");
    const seen = await page.waitForFunction(() => {
      const thought = document.querySelector("details.reasoning[open] .thought");
      return thought && { first: thought.textContent, texts: document.querySelectorAll(".text").length };
    });
    const { first, texts } = await seen.jsonValue();
    expect(!first.includes("at once"), "the reasoning came at its end");
    expect(texts === 0, "reasoning is shown as text");
  });

  await test("text appears before the answer is complete, and two tools start before either ends", async () => {
    await page.waitForSelector(".assistant .text");
    expect(!(await last(page)).includes("degrees"), "the text came with the end of the answer");
    await page.waitForFunction(() => document.querySelectorAll("details.tool[data-state=running]").length === 2);
    expect((await page.textContent("details.tool .what")) === "Calling tool: demo_weather…", "the call is not named");
    await picture(page, "running");
    await page.waitForFunction(() => document.querySelectorAll("details[data-ended]").length === 2);
  });

  await test("reasoning is folded behind the answer, and never part of it", async () => {
    const fold = page.locator("details.reasoning").first();
    expect((await fold.getAttribute("open")) === null, "the reasoning is still open");
    expect((await fold.textContent()).includes("The user asks for the weather."), "the reasoning is not whole");
    expect(!(await page.locator(".text").allTextContents()).join().includes("asks for"), "the answer has reasoning");
    const colour = (selector) => page.locator(selector).first().evaluate((element) => getComputedStyle(element).color);
    expect((await colour(".reasoning")) !== (await colour(".text")), "the reasoning is not dim");
    await fold.locator("summary").click();
    expect(await fold.locator(".thought").isVisible(), "the reasoning does not unfold");
  });

  await test("a result opens by keyboard", async () => {
    await idle(page);
    await page.focus("details.tool summary");
    await page.keyboard.press("Enter");
    expect((await page.textContent("details[open] .result")).includes("degrees"), "the result is not shown");
    await picture(page, "wide");
  });

  await test("a reload finds the conversation", async () => {
    await page.reload();
    await page.waitForSelector(".assistant details.tool");
    expect((await page.$$("article")).length === 2, "the messages are missing");
    await page.waitForFunction(() => document.querySelectorAll("#conversations a[aria-current]").length === 1);
    const fold = page.locator("details.reasoning");
    expect((await fold.count()) === 1 && !(await fold.locator(".thought").isVisible()), "the reasoning is not folded");
  });

  await test("a conversation is exported", async () => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#export")]);
    const lines = (await readFile(await download.path(), "utf8")).trim().split("\n").map((line) => JSON.parse(line));
    const roles = lines.map(({ role }) => role).join();
    expect(roles === "user,assistant,tool,tool,assistant", `the file has other messages: ${roles}`);
    expect(download.suggestedFilename() === "conversation.ndjson", "the file has another name");
  });

  await test("markup and scripts of a message are text", async () => {
    await ask(page, "<img src=x onerror=document.title='broken'><script>document.title='broken'</script>");
    await idle(page);
    await page.waitForFunction(() => document.querySelectorAll("article").length === 4);
    expect((await page.$$("#messages img, #messages script")).length === 0, "a message made elements");
    expect((await page.title()) !== "broken", "a message ran a script");
    expect((await last(page)).includes("<img"), "the text is missing");
  });

  await test("finished Markdown is rendered while the rest streams", async () => {
    const { page: other } = await open();
    await ask(other, "Zero\n\n# One\n\n- two\n- three\n\n```\nfour\n```\n\nand a *fifth* piece with a few words");
    // Both hold in one frame: something is rendered, and the turn runs.
    await other.waitForFunction(() => document.querySelector(".assistant .markdown p") && !document.querySelector("#stop").hidden);
    await idle(other);
    for (const element of ["h3", "ul li", ".code pre", "p em"]) {
      expect((await other.$$(`.assistant .markdown ${element}`)).length > 0, `${element} is missing`);
    }
    expect((await other.textContent(".assistant .live")) === "", "a text is left unrendered");
    const streamed = await other.innerHTML(".assistant .markdown");
    await other.reload();
    await other.waitForSelector(".assistant .markdown p em");
    expect((await other.innerHTML(".assistant .markdown")) === streamed, "a reload shows other elements");
    await picture(other, "markdown");
    await other.context().close();
  });

  await test("a turn is stopped, and its text kept", async () => {
    await ask(page, "Tell me about the weather");
    await page.waitForFunction(() => document.querySelectorAll("article:last-child .text").length > 0);
    await page.click("#stop");
    await idle(page);
    expect(!(await last(page)).includes("degrees"), "the turn was not stopped");
    const notes = () => page.locator("article:last-child .note").allTextContents();
    expect(String(await notes()) === "This answer was stopped.", `the notes are ${await notes()}`);
    expect((await page.$$("article:last-child .error")).length === 0, "a stop is shown as a failure");
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll("article").length === 6);
    expect(String(await notes()) === "This answer was interrupted.", `after a reload, the notes are ${await notes()}`);
    expect(!(await last(page)).includes("[interrupted]"), "the mark for the model is shown");
  });

  await test("a page whose network was cut catches up", async () => {
    await ask(page, "How is the weather now?");
    await page.waitForFunction(() => document.querySelectorAll("article:last-child details.tool").length === 2);
    const cut = page.waitForEvent("requestfailed");
    await context.setOffline(true);
    await cut;
    await context.setOffline(false);
    await idle(page);
    const text = await last(page);
    expect(text.includes("The weather is made up; the time is real.") && !text.includes("broken"), text);
    expect(text.split("Let me look").length === 2, `the answer is there twice: ${text}`);
  });

  await test("earlier messages come page by page, and the one that is read stays in its place", async () => {
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll("article").length === 8);
    expect((await page.getByText("Earlier messages").count()) === 0, "a whole conversation has no earlier messages");
    const { context, page: other } = await open(new URL(page.url()).hash, { viewport: { width: 900, height: 400 }, bypassCSP: true });
    // Each page is one turn.
    let released = Promise.resolve();
    await other.route(/\/api\/conversations\/[^/?]+\?/, async (route) => {
      await released;
      await route.continue({ url: `${route.request().url()}&limit=1` });
    });
    await other.reload();
    const count = (articles) => other.waitForFunction((count) => document.querySelectorAll("article").length === count, articles);
    await count(2);
    const frame = () => other.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const earlier = other.getByRole("button", { name: "Earlier messages" });
    expect((await other.getByRole("log").evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight)) < 2, "the end is not in view");
    await other.focus("#messages");
    await other.keyboard.press("Tab");
    const focused = () => other.evaluate(() => document.activeElement.id || document.activeElement.textContent);
    expect((await focused()) === "Earlier messages", "the button is not reached by keyboard");
    await expectAccessible(other);
    await picture(other, "earlier");

    await context.setOffline(true);
    await other.keyboard.press("Enter");
    await other.waitForSelector(".earlier [role=alert] >> text=the server cannot be reached");
    await context.setOffline(false);
    for (const articles of [4, 6, 8]) {
      const first = await other.$("article");
      const top = () => frame().then(() => first.evaluate((article) => article.getBoundingClientRect().top));
      const before = await top();
      await other.keyboard.press("Enter");
      await count(articles);
      expect(Math.abs((await top()) - before) < 2, `the message moved from ${before} to ${await top()}`);
      expect((await focused()) === (articles < 8 ? "Earlier messages" : "messages"), `the focus is on ${await focused()}`);
    }
    expect((await earlier.count()) === 0, "earlier messages are offered at the beginning");
    const texts = (of) => of.locator("article").allTextContents();
    expect(String(await texts(other)) === String(await texts(page)), "the pages are not the conversation");

    await other.reload();
    await count(2);
    let release;
    released = new Promise((done) => (release = done));
    const asked = other.waitForRequest(/before=/);
    await earlier.click();
    await asked;
    await other.getByRole("button", { name: "New conversation" }).click();
    const read = other.waitForResponse(/before=/);
    release();
    await (await read).finished();
    await frame();
    expect((await other.$$("article")).length === 0, "a late page is shown in another conversation");
    await context.close();
  });

  await test("an edit ends when another message is answered again", async () => {
    const send = async (text) => {
      await ask(page, text);
      await idle(page);
    };
    const { hash } = new URL(page.url());
    await page.click("#new");
    await send("The first one.");
    await send("The second one.");
    await page.locator("article.user").last().getByText("Edit").click();
    await page.locator("article.user").first().getByText("Answer again").click();
    expect(!(await page.locator("#editing").isVisible()), "the edit goes on");
    await idle(page);
    await send("The third one.");
    const texts = () => page.locator("article.user .plain").allTextContents();
    expect(String(await texts()) === "The first one.,The third one.", `the messages are ${await texts()}`);
    const answers = await page.locator("article.assistant").allTextContents();
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll("article").length === 4);
    expect(String(await page.locator("article.assistant").allTextContents()) === String(answers), "other answers are stored");
    await page.goto(url + hash);
    await page.waitForFunction(() => document.querySelectorAll("article").length === 8);
  });

  await test("a message is edited, and another one answered again", async () => {
    await page.locator("article.user").last().getByText("Answer again").click();
    await idle(page);
    await page.waitForFunction(() => document.querySelectorAll("article").length === 8);
    expect((await last(page)).includes("degrees"), "the message was not answered again");
    await page.locator("article.user").nth(1).getByText("Edit").click();
    await page.fill("#text", "What time is it?");
    await page.keyboard.press("Enter");
    await idle(page);
    expect((await page.$$("article")).length === 4, "the messages behind the edited one are still there");
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll("article").length === 4);
    expect((await page.textContent("article >> nth=2")).includes("What time is it?"), "the edit was not stored");
  });

  for (const [name, options] of [
    ["light", { viewport: { width: 390, height: 800 } }],
    ["dark", { viewport: { width: 390, height: 800 }, colorScheme: "dark" }],
    ["wide-dark", { colorScheme: "dark" }],
  ]) {
    await test(`nothing serious for accessibility, and no overflow, ${name}`, async () => {
      const { page: other } = await open(new URL(page.url()).hash, { ...options, bypassCSP: true });
      await other.waitForSelector(".assistant details.tool");
      await picture(other, name);
      await expectAccessible(other);
    });
  }
});
