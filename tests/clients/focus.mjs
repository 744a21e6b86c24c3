// The focus of the keyboard in the chat page, and parts that cover others on a phone, against `advisor serve`.
// Usage: node focus.mjs ADVISOR CHROMIUM [FOLDER]

import { ask, expect, expectAccessible, expectFocus, hold, idle, run } from "./browser.mjs";
import { gate, model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);

const LIST = /\/api\/conversations(\?|$)/;
const held = gate();
const answer = (messages) => {
  const asked = messages.at(-1).content;
  return asked === "Wait." ? [...pieces("Just a moment."), held.opened] : pieces(`Heard: ${asked}`);
};
const other = await model(answer);
const server = await serve(advisor, ["--provider", "openai", "--model", "m", "--base-url", other.url], { OPENAI_API_KEY: "none" });

await run({ name: "focus", url: `${server.url}/`, executablePath, folder }, async ({ open, test, picture }) => {
  const { context, page } = await open();

  await test("the focus goes from Send to Stop, and from Stop to the text", async () => {
    await page.fill("#text", "Wait.");
    await page.keyboard.press("Tab");
    await expectFocus(page, "send");
    await page.keyboard.press("Enter");
    await page.waitForSelector("article:last-child >> text=Just a moment.");
    await expectFocus(page, "stop");
    await page.keyboard.press("Enter");
    await idle(page);
    await expectFocus(page, "text");
    await ask(page, "And now?");
    await page.waitForSelector("article:last-child >> text=Heard: And now?");
    await idle(page);
    await expectFocus(page, "text");
    await context.close();
  });

  const { page: phone } = await open(new URL(page.url()).hash, { viewport: { width: 390, height: 800 }, bypassCSP: true });
  const menu = phone.locator("#side");
  const openMenu = async () => {
    await phone.click("#menu");
    await menu.waitFor({ state: "visible" });
  };
  const closed = async () => {
    await menu.waitFor({ state: "hidden" });
    await expectFocus(phone, "menu");
    expect((await phone.getAttribute("#menu", "aria-expanded")) === "false", "the button says that the menu is open");
    expect(!(await phone.locator("main").evaluate((main) => main.inert)), "the page is still inert");
  };

  await test("the menu of a phone has the focus, and the rest of the page is inert", async () => {
    await phone.waitForSelector("#conversations a[aria-current]", { state: "attached" });
    await openMenu();
    await expectFocus(phone, "menu-close");
    expect(await phone.locator("main").evaluate((main) => main.inert), "the page behind it is not inert");
    await picture(phone, "menu");
    await expectAccessible(phone);
    await phone.keyboard.press("Enter");
    await closed();
  });

  await test("the menu closes by Escape, by a click beside it, and by the link of the open conversation", async () => {
    await openMenu();
    await phone.keyboard.press("Escape");
    await closed();
    await openMenu();
    await phone.mouse.click(370, 400);
    await closed();
    await openMenu();
    await phone.click("#conversations a[aria-current]");
    await closed();
    await openMenu();
    const { release } = await hold(phone, LIST);
    await phone.click("#new");
    await menu.waitFor({ state: "hidden" });
    await expectFocus(phone, "text");
    release();
  });

  await test("the inspector of a phone has the focus, and gives it back", async () => {
    for (const close of [() => phone.keyboard.press("Escape"), () => phone.keyboard.press("Enter"), () => phone.keyboard.press("Alt+i")]) {
      await phone.focus("#text");
      await phone.keyboard.press("Alt+i");
      await expectFocus(phone, "inspector-close");
      expect(await phone.locator("main").evaluate((main) => main.inert), "the page behind it is not inert");
      await close();
      await phone.waitForSelector("#inspector", { state: "hidden" });
      await expectFocus(phone, "inspect");
      expect(!(await phone.locator("main").evaluate((main) => main.inert)), "the page is still inert");
    }
  });

  await test("the inspector takes the place of the menu", async () => {
    await openMenu();
    await phone.keyboard.press("Alt+i");
    await expectFocus(phone, "inspector-close");
    expect(!(await menu.isVisible()), "the menu is open behind the inspector");
    await expectAccessible(phone);
    await phone.keyboard.press("Escape");
    expect(!(await phone.locator("main").evaluate((main) => main.inert)), "the page is still inert");
  });

  await test("a window that gets wide makes nothing inert", async () => {
    await openMenu();
    await phone.setViewportSize({ width: 1280, height: 800 });
    await phone.waitForFunction(() => !document.querySelector("main").inert);
    await phone.setViewportSize({ width: 390, height: 800 });
    await phone.waitForFunction(() => document.querySelector("main").inert);
    await phone.keyboard.press("Escape");
    await closed();
  });
});
await server.close();
other.close();
