// The inspector beside the chat page, against `advisor serve`.
// Usage: node inspector.mjs ADVISOR CHROMIUM [FOLDER]

import { readFile } from "node:fs/promises";
import { ask, expect, expectAccessible, expectFocus, idle, run } from "./browser.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);
const server = await serve(advisor);

const rows = (page) => page.locator("#journal-events .what").allTextContents();

/** Opens a saved journal in the page. */
const openJournal = (page, journal, name = "saved.json") =>
  page.setInputFiles("#journal-file", { name, mimeType: "application/json", buffer: Buffer.from(JSON.stringify(journal)) });

await run({ name: "inspector", url: `${server.url}/`, executablePath, folder }, async ({ open, test, picture }) => {
  const { page } = await open("", { acceptDownloads: true });
  let saved;

  await test("it opens by keyboard, and follows a turn that runs", async () => {
    await page.keyboard.press("Alt+i");
    expect(await page.locator("#inspector").isVisible(), "the panel is not shown");
    await ask(page, "How is the weather?");
    await page.waitForFunction(() => document.querySelectorAll("#journal-events .mark").length > 0);
    expect(await page.locator("#stop").isVisible(), "the journal came with the end of the turn");
    await idle(page);
    await page.waitForFunction(() => document.querySelectorAll("#journal-promises .kept").length === 2);
  });

  await test("memory's write stands before the start of a tool, and before the completion", async () => {
    const events = await rows(page);
    const place = (text) => events.findIndex((event) => event.includes(text));
    const stored = place("stored: assistant(call_1_0,call_1_1)");
    expect(stored >= 0 && stored < place("demo_weather starts"), events.join("\n"));
    const end = events.findLastIndex((event) => /stored: .*end$/.test(event));
    expect(end > stored && end < place("tool-call has finished"), events.join("\n"));
    expect(events.some((event) => /^model: first chunk after \d+ ms$/.test(event)), "the time to the first token is missing");
    expect((await page.textContent("#journal-sums")).includes("First token"), "the sums are missing");
    const lanes = await page.locator(".lane-name").allTextContents();
    expect(["tool-call", "chat-memory", "model", "store", "tools"].every((lane) => lanes.includes(lane)), lanes.join());
    await picture(page, "inspector");
  });

  await test("a journal is saved, and opened again", async () => {
    const events = await rows(page);
    const download = page.waitForEvent("download");
    await page.click("#journal-save");
    saved = JSON.parse(await readFile(await (await download).path(), "utf8"));
    await page.click("#new");
    await page.waitForFunction(() => document.querySelectorAll("#journal-events tr").length === 0);
    await openJournal(page, saved);
    await page.waitForSelector("#journal-events tr");
    expect((await rows(page)).join() === events.join(), "the saved journal has other events");
  });

  await test("an order that is broken is shown", async () => {
    const tool = saved.events.findIndex(({ label }) => label.startsWith("tool.start"));
    const events = [saved.events[tool], ...saved.events.slice(0, tool), ...saved.events.slice(tool + 1)];
    await openJournal(page, { ...saved, events });
    await page.waitForSelector("#journal-promises .broken");
    await openJournal(page, { ...saved, events: saved.events.filter(({ label }) => !label.endsWith(" end")) });
    await page.waitForFunction(() => document.querySelector("#journal-promises li:last-child").className === "broken");
  });

  await test("nothing is said of the end while a turn runs, or of one that was stopped", async () => {
    const promises = () => page.locator("#journal-promises li").allTextContents();
    // The answer of each round is complete for memory, which is inside the tool loop.
    const first = saved.events.findIndex(({ label }) => label === "advisor.completed chat-memory r1") + 1;
    await openJournal(page, { ...saved, events: saved.events.slice(0, first) }, "runs.json");
    await page.waitForFunction(() => document.querySelector("#journal-source").textContent === "runs.json");
    expect((await promises()).length === 0, `of a turn that runs: ${await promises()}`);
    const asked = saved.events.findLastIndex(({ label }) => label === "model.ask r2") + 1;
    await openJournal(page, { ...saved, events: [...saved.events.slice(0, asked), { label: "journal.cut" }] }, "cut.json");
    await page.waitForFunction(() => document.querySelector("#journal-source").textContent === "cut.json");
    expect((await promises()).length === 1, `of a journal that is cut: ${await promises()}`);
    expect((await rows(page)).at(-1) === "later events are not recorded", (await rows(page)).at(-1));
    const stopped = [{ label: "advisor.drop tool-call" }, { label: "stored end" }];
    await openJournal(page, { ...saved, events: [...saved.events.slice(0, asked), ...stopped] }, "stopped.json");
    await page.waitForFunction(() => document.querySelector("#journal-source").textContent === "stopped.json");
    expect(String(await promises()) === "Memory had each answer before a tool of it started.", `of a stopped turn: ${await promises()}`);
  });

  await test("an earlier answer of the server that comes late is not shown", async () => {
    const journal = (count) => ({ version: 1, events: saved.events.slice(0, count) });
    let asked = 0;
    let release;
    const released = new Promise((done) => (release = done));
    await page.route(/\/journal$/, async (route) => {
      const count = ++asked;
      // The first answer waits until the turn has ended.
      if (count === 1) await released;
      await route.fulfill({ json: journal(count === 1 ? 2 : saved.events.length) });
    });
    await page.click("#new");
    await ask(page, "How is the weather once more?");
    await page.waitForFunction(() => document.querySelector("article:last-child .text"));
    await page.click("#stop");
    await idle(page);
    expect(asked === 1, `${asked} requests at once`);
    release();
    await page.waitForFunction((count) => document.querySelectorAll("#journal-events .what").length === count, saved.events.length);
    expect(asked === 2, `${asked} requests`);
    await page.unroute(/\/journal$/);
  });

  await test("a journal with any number of events and lanes is drawn in part", async () => {
    const lanes = Array.from({ length: 3_000 }, (_, place) => ({ label: `advisor.enter lane${place}` }));
    const stores = Array.from({ length: 3_000 }, () => ({ label: "stored user" }));
    await openJournal(page, { version: 1, events: [...lanes, ...stores] }, "large.json");
    await page.waitForSelector("#journal-events .note >> text=These are the first 5000 of 6000 events.");
    expect((await rows(page)).length === 5_000, "other rows");
    expect((await page.locator(".lane-name").count()) === 24, "other lanes");
  });

  await test("journals of tests, of later versions, and other files", async () => {
    await openJournal(page, { version: 1, events: [{ label: "stored user" }, { label: "model.ask r1" }, { label: "tool.start c1", at_ms: 5, fields: { name: "weather" } }] });
    await page.waitForFunction(() => document.querySelectorAll("#journal-events .what").length === 3);
    expect((await page.locator(".lane-name").allTextContents()).join() === "store,model,tools", "the lanes are wrong");
    const wrong = [["later.json", { version: 2, events: [] }, "version 2"], ["object.json", { a: 1 }, "no journal"], ["list.json", [], "no journal"]];
    for (const [name, journal, words] of wrong) {
      await openJournal(page, journal, name);
      await page.waitForFunction((expected) => expected.every((part) => document.querySelector("#journal-source").textContent.includes(part)), [name, words]);
      expect((await rows(page)).length === 0, "events of another file are left");
    }
    await openJournal(page, { version: 1, events: [{ label: "<img src=x onerror=alert(1)>", fields: { a: "<script>alert(1)</script>" } }, { label: "advisor.enter <b>name</b>" }] }, "<b>.json");
    await page.waitForSelector("#journal-events .what");
    expect((await page.$$("#inspector :is(img, script, b)")).length === 0, "a label made elements");
  });

  await test("it closes, and the focus is back, or stays outside", async () => {
    for (const [from, to] of [["text", "text"], ["inspector-close", "inspect"]]) {
      await page.focus(`#${from}`);
      await page.keyboard.press("Alt+i");
      expect(!(await page.locator("#inspector").isVisible()), "the panel is still shown");
      await expectFocus(page, to);
      await page.keyboard.press("Alt+i");
    }
    await page.click("#inspector-close");
  });

  for (const [name, options] of [
    ["inspector-narrow", { viewport: { width: 390, height: 800 } }],
    ["inspector-narrow-dark", { viewport: { width: 390, height: 800 }, colorScheme: "dark" }],
    ["inspector-light", {}],
    ["inspector-dark", { colorScheme: "dark" }],
  ]) {
    await test(`nothing serious for accessibility, and no overflow, ${name}`, async () => {
      const { page: other } = await open("", { ...options, bypassCSP: true });
      await other.click("#inspect");
      await openJournal(other, saved);
      await other.waitForSelector("#journal-events tr");
      await picture(other, name);
      await expectAccessible(other);
    });
  }
});
await server.close();
