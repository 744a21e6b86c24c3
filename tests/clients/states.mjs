// The states of a turn in the chat page, against `advisor serve`: for the eye, and for a screen reader.
// Usage: node states.mjs ADVISOR CHROMIUM [FOLDER]

import { ask, expect, expectAccessible, expectFocus, idle, run } from "./browser.mjs";
import { call, gate, model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);

const MARKDOWN = `## Two cities

| City | Degrees |
|:-----|--------:|
| Oslo | 12 |
| Lima | 18 |

\`\`\`rust
fn degrees(city: &str) -> u32 { city.bytes().map(u32::from).sum::<u32>() % 30 }
\`\`\`

> A quotation with a [link](https://example.org/).
`;

let forming = gate();
let writing = gate();
const answer = (messages) => {
  const asked = messages.at(-1);
  if (asked.role === "tool") return [...pieces("Both are fine. "), writing.opened, ...pieces("\n\n" + MARKDOWN)];
  if (asked.content !== "How is it?") return pieces(`Heard: ${asked.content}`);
  return [
    ...pieces("Two cities, so two calls.", "reasoning_content"),
    ...pieces("Let me look. "),
    ...call("c1", "demo_weather", ['{"city": ', '"Os', forming.opened, 'lo"}']),
    ...call("c2", "demo_weather", ['{"city": "Lima"}'], 1),
  ];
};
const other = await model(answer);
const server = await serve(advisor, ["--provider", "openai", "--model", "m", "--base-url", other.url], { OPENAI_API_KEY: "none" });

/** Notes each text that a screen reader says: those of the status, and alerts. */
const listen = (page) =>
  page.evaluate(() => {
    window.said = [];
    const status = document.querySelector("#announcement");
    new MutationObserver(() => status.textContent && window.said.push(status.textContent)).observe(status, { childList: true });
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const node of addedNodes) if (node.role === "alert") window.said.push(`alert: ${node.textContent}`);
    }).observe(document.querySelector("#messages"), { childList: true, subtree: true });
  });

await run({ name: "states", url: `${server.url}/`, executablePath, folder, expected: "the server responded with a status of" }, async ({ open, test, picture }) => {
  for (const [name, options] of [
    ["states", {}],
    ["states-narrow-dark", { viewport: { width: 390, height: 800 }, colorScheme: "dark" }],
  ]) {
    const { context, page } = await open("", { ...options, bypassCSP: true });
    const tool = page.locator("details.tool").first();
    const log = page.getByRole("log", { name: "Messages" });
    const state = (wanted, count) => page.waitForFunction(([wanted, count]) => document.querySelectorAll(`.tool[data-state="${wanted}"]`).length === count, [wanted, count]);
    forming = gate();
    writing = gate();

    await test(`arguments of a call are shown as they form, ${name}`, async () => {
      await listen(page);
      await ask(page, "How is it?");
      await state("preparing", 1);
      await tool.locator('.preview >> text={"city": "Os').waitFor();
      expect((await tool.locator(".what").textContent()) === "Calling tool: demo_weather…", await tool.textContent());
      expect(await tool.locator(".preview").isVisible(), "the arguments are not in view");
      await picture(page, `${name}-forming`);
      await expectAccessible(page);
    });

    await test(`the log is busy while a turn runs, and nothing is said yet, ${name}`, async () => {
      expect((await log.getAttribute("aria-busy")) === "true", "the log is not busy");
      expect((await log.getAttribute("aria-live")) === "off", "each piece of the text is said");
      expect((await page.evaluate(() => window.said.length)) === 0, "something is said before the end");
    });

    await test(`a tool that runs shows its progress, ${name}`, async () => {
      forming.release();
      await state("running", 2);
      await tool.locator(".progress >> text=Looking at the sky of Oslo").waitFor();
      await picture(page, `${name}-running`);
      await expectAccessible(page);
      await state("done", 2);
      expect((await page.locator(".progress").allTextContents()).join("") === "", "progress is left behind the end");
    });

    await test(`text that streams is accessible, ${name}`, async () => {
      await page.waitForSelector(".live >> text=Both are fine.");
      await expectAccessible(page);
    });

    await test(`a finished answer is said once, ${name}`, async () => {
      writing.release();
      await idle(page);
      await page.waitForFunction(() => window.said.length > 0);
      expect((await log.getAttribute("aria-busy")) === "false", "the log is still busy");
      const said = await page.evaluate(() => window.said);
      expect(said.length === 1 && said[0].includes("Both are fine.") && said[0].includes("Two cities"), JSON.stringify(said));
      expect(!said[0].includes("Copy") && !said[0].includes("degrees\":"), `more than the answer is said: ${said[0]}`);
    });

    await test(`tables, code, and details that are open are accessible, ${name}`, async () => {
      for (const summary of await page.$$("#messages summary")) await summary.click();
      for (const selector of [".scrolling table", ".code pre", "details.reasoning[open]", "details.tool[open] .result"]) {
        expect((await page.$$(selector)).length > 0, `${selector} is missing`);
      }
      await picture(page, `${name}-open`);
      await expectAccessible(page);
    });

    await test(`a message that is edited is accessible, and its edit can be given up, ${name}`, async () => {
      await page.locator("article.user").getByText("Edit").click();
      await page.getByText("Editing a message.").waitFor();
      await expectFocus(page, "text");
      await picture(page, `${name}-edit`);
      await expectAccessible(page);
      await page.keyboard.press("Escape");
      expect((await page.inputValue("#text")) === "", "the text is left in the box");
      expect(!(await page.locator("#editing").isVisible()), "the edit goes on");
      await ask(page, "A new one.");
      await page.waitForSelector("article:last-child >> text=Heard: A new one.");
      await idle(page);
      expect((await page.$$("article")).length === 4, "the new message has replaced the other one");
    });

    await test(`a failure is an alert, and a reload says nothing, ${name}`, async () => {
      await page.route(/\/api\/chat\?/, (route) => route.fulfill({ status: 503, contentType: "application/json", body: '{"error": {"message": "the store is away"}}' }));
      await page.evaluate(() => (window.said = []));
      await ask(page, "Once more.");
      await page.getByRole("alert").filter({ hasText: "the store is away" }).waitFor();
      await idle(page);
      const said = await page.evaluate(() => window.said);
      expect(said.join() === "alert: the store is away", JSON.stringify(said));
      await page.reload();
      await page.waitForFunction(() => document.querySelectorAll("article").length === 4);
      expect((await page.textContent("#announcement")) === "", "the stored answers are said");
    });
    await context.close();
  }
});
await server.close();
other.close();
