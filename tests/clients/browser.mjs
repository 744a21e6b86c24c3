// A headless Chromium, and the tests that run in it.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { expect } from "./tests.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export { expect };

/** Sends a message. */
export const ask = async (page, text) => {
  await page.fill("#text", text);
  await page.keyboard.press("Enter");
};

/** Waits until no turn runs. */
export const idle = (page) => page.waitForFunction(() => document.querySelector("#stop").hidden);

/** Returns the text of the last message. */
export const last = (page) => page.textContent("article:last-child");

/** Waits until the element with an id has the focus. A page may move the focus after the event that a test waited for. */
export const expectFocus = async (page, id) => {
  const has = page.waitForFunction((id) => document.activeElement.id === id, id, { timeout: 10_000 });
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.tagName);
  await has.catch(async () => expect(false, `the focus is on ${await focused()}, not on ${id}`));
};

/** Holds the requests to addresses that match, until `release` is called. Returns the held ones and `release`. */
export const hold = async (page, address) => {
  const held = [];
  let release;
  const released = new Promise((done) => (release = done));
  await page.route(address, async (route) => {
    held.push(route.request().url());
    await released;
    await route.continue();
  });
  return { held, release };
};

/** Fails if axe finds something serious, or the page is wider than its window. The page needs `bypassCSP`. */
export const expectAccessible = async (page) => {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  expect(serious.length === 0, JSON.stringify(serious.map(({ id, nodes }) => [id, nodes[0].html])));
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is too wide");
};

/** Runs tests of one file, and sets the exit code. Errors in the console fail, except those with the text `expected`. */
export const run = async ({ name, url, executablePath, folder, expected }, tests) => {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const problems = [];
  let passed = 0;

  /** Opens the page at a path, in a window of its own. Nothing fades, so that axe and pictures see the final colours. */
  const open = async (path = "", options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => message.type() === "error" && !message.text().includes(expected) && problems.push(message.text()));
    page.on("dialog", (dialog) => {
      problems.push(`a dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    await page.goto(url + path);
    return { context, page };
  };
  const test = async (what, body) => {
    await body();
    passed += 1;
    console.log(`ok      ${name}: ${what}`);
  };
  const picture = async (page, file) => {
    if (folder) await page.screenshot({ path: `${folder}/${file}.png` });
  };

  try {
    await tests({ open, test, picture });
    expect(problems.length === 0, problems.join("\n"));
    console.log(`${passed} passed, 0 failed`);
  } catch (error) {
    console.log(`FAILED  ${error.stack}\n${problems.join("\n")}`);
    console.log(`${passed} passed, 1 failed`);
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
};
