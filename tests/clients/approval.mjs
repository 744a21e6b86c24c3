// Calls that wait for a person, in the chat page, against `advisor serve --ask`.
// Usage: node approval.mjs ADVISOR CHROMIUM [FOLDER]

import { ask, expect, expectAccessible, expectFocus, idle, run } from "./browser.mjs";
import { call, model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);

/** Arguments whose end is out of view if they are shown as they are written, with a member twice, and a character that turns the text. */
const HIDING = `{"city": "Oslo",${"\n".repeat(60)}"c\\u0069ty": "Rome\u202e", "cents": 9007199254740993, "most": 0.10000000000000000001, "to": [{}, [], "a\\"b", [-7, 1e23, null]]}`;
const SEEN = `{
  "city": "Rome\\u202e",
  "cents": 9007199254740993,
  "most": 0.1,
  "to": [
    {},
    [],
    "a\\"b",
    [
      -7,
      1e+23,
      null
    ]
  ]
}`;

const answer = (messages) => {
  const asked = messages.at(-1);
  if (asked.role === "tool") {
    const results = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
    return pieces(`Results: ${results.map(({ content }) => content).join(" | ")}`);
  }
  if (asked.content === "Hide it.") return call("c1", "demo_weather", [HIDING]);
  if (asked.content !== "How is it?") return pieces(`Heard: ${asked.content}`);
  return [
    ...pieces("Let me ask. "),
    ...call("c1", "demo_weather", ['{"city": "Oslo"}']),
    ...call("c2", "demo_weather", ['{"city": "Lima"}'], 1),
  ];
};
const CHAT = /\/api\/chat\?/;
const other = await model(answer);
const options = ["--provider", "openai", "--model", "m", "--base-url", other.url, "--ask", "demo_*"];
const server = await serve(advisor, options, { OPENAI_API_KEY: "none" });

await run({ name: "approval", url: `${server.url}/`, executablePath, folder, expected: "the server responded with a status of" }, async ({ open, test, picture }) => {
  for (const [name, options] of [
    ["approval", {}],
    ["approval-narrow-dark", { viewport: { width: 390, height: 800 }, colorScheme: "dark" }],
  ]) {
    const { context, page } = await open("", { ...options, bypassCSP: true });
    const form = page.getByRole("form", { name: "Approval" });
    const choice = (number) => form.locator("fieldset").nth(number);
    const args = (number) => choice(number).getByLabel("Arguments", { exact: true });
    const go = () => form.getByRole("button", { name: "Continue" }).click();
    const tools = async () => (await page.locator(".tool :is(.what, .state)").allTextContents()).join();
    const waiting = Array(2).fill("Tool without a result: demo_weather,open").join();
    const lastText = () => page.locator("article .text").last().textContent();

    await test(`calls that wait are shown with their arguments, ${name}`, async () => {
      await ask(page, "How is it?");
      await form.waitFor();
      expect((await form.locator("legend").allTextContents()).join() === "Tool: demo_weather,Tool: demo_weather", "other tools");
      expect((await tools()) === waiting, `the calls are shown as: ${await tools()}`);
      const shown = await choice(1).locator(".shown").innerText();
      expect(shown === '{\n  "city": "Lima"\n}', `other arguments: ${shown}`);
      expect((await page.textContent("#announcement")) === "The assistant waits for your decision.", "nothing is said");
      await picture(page, name);
      await expectAccessible(page);
    });

    await test(`the calls still wait when the page is loaded again, ${name}`, async () => {
      await page.reload();
      await form.waitFor();
      expect((await form.locator("fieldset").count()) === 2, "a call is missing");
      expect((await tools()) === waiting, `the calls are shown as: ${await tools()}`);
    });

    await test(`arguments that are no JSON are not sent, ${name}`, async () => {
      for (const number of [0, 1]) {
        await choice(number).getByLabel("Approve").check();
        await choice(number).getByText("Change the arguments").click();
        await args(number).fill("{");
        await choice(number).getByText("Change the arguments").click();
      }
      await go();
      for (const number of [0, 1]) {
        await choice(number).locator(".error >> text=no valid JSON").waitFor();
        const said = await args(number).evaluate((args) => document.getElementById(args.getAttribute("aria-describedby")).textContent);
        expect(said === "The arguments are no valid JSON.", `the reason is ${said}`);
      }
      expect(await args(0).evaluate((args) => args === document.activeElement), "the first one has no focus");
      await expectAccessible(page);
      await picture(page, `${name}-invalid`);
    });

    await test(`a decision that is refused keeps what was entered, ${name}`, async () => {
      await args(0).fill('{"city": 7}');
      expect((await choice(0).locator(".shown").innerText()) === '{\n  "city": 7\n}', "other arguments are shown");
      await choice(1).getByLabel("Deny").check();
      await choice(1).getByLabel("Reason").fill("not there");
      const refused = page.waitForResponse(CHAT);
      await go();
      await page.locator("article .error", { hasText: (await (await refused).json()).error.message }).waitFor();
      await form.waitFor();
      await idle(page);
      expect((await args(0).inputValue()) === '{"city": 7}', "the arguments are lost");
      expect((await choice(1).getByLabel("Reason").inputValue()) === "not there", "the reason is lost");
      expect(await choice(1).getByLabel("Deny").isChecked(), "the choice is lost");
    });

    await test(`one call runs with other arguments and one is denied, with the keyboard, ${name}`, async () => {
      await args(0).fill('{"city": "Rome"}');
      await form.getByRole("button", { name: "Continue" }).focus();
      await page.keyboard.press("Enter");
      await expectFocus(page, "stop");
      await page.locator("article .text >> text=Results:").waitFor();
      await idle(page);
      await expectFocus(page, "text");
      const text = await lastText();
      expect(text.includes('"city":"Rome"') && text.includes("not started: not there"), text);
      expect((await form.count()) === 0, "the form is still there");
    });

    await test(`a message in place of a decision goes on without the calls, ${name}`, async () => {
      await ask(page, "How is it?");
      await form.waitFor();
      await ask(page, "Never mind.");
      await page.locator("article .text >> text=Heard: Never mind.").waitFor();
      await idle(page);
      expect((await form.count()) === 0, "the form is still there");
    });

    await test(`a decision that came first elsewhere is refused, and the page goes on, ${name}`, async () => {
      await ask(page, "How is it?");
      await form.waitFor();
      const { page: second } = await open("", { ...options, bypassCSP: true });
      await second.goto(page.url());
      const other = second.getByRole("form", { name: "Approval" });
      for (const number of [0, 1]) await other.locator("fieldset").nth(number).getByLabel("Deny").check();
      await other.getByRole("button", { name: "Continue" }).click();
      await second.locator("article .text >> text=The user has denied it.").waitFor();
      for (const number of [0, 1]) await choice(number).getByLabel("Approve").check();
      const refused = page.waitForResponse(CHAT);
      await go();
      const { error } = await (await refused).json();
      await page.locator("article .text >> text=The user has denied it.").waitFor();
      expect((await refused.then((response) => response.status())) === 422, error.message);
      expect((await page.locator("article .error").textContent()) === error.message, "the refusal is not shown");
      await idle(page);
      expect((await form.count()) === 0, "the form is still there");
      await second.context().close();
    });

    await test(`arguments are shown whole, as they are read, and approved as they were written, ${name}`, async () => {
      await ask(page, "Hide it.");
      await form.waitFor();
      const shown = form.locator(".shown");
      expect((await shown.innerText()) === SEEN, `the arguments are shown as ${await shown.innerText()}`);
      expect(await shown.evaluate((shown) => shown.scrollHeight <= shown.clientHeight + 1), "the arguments are clipped");
      await picture(page, `${name}-hiding`);
      await expectAccessible(page);
      await form.getByText("Change the arguments").click();
      expect((await args(0).inputValue()) === SEEN, "other arguments are changed");
      expect(await args(0).evaluate((args) => args.scrollHeight <= args.clientHeight + 1), "the text is clipped");
      await form.getByLabel("Approve").check();
      const sent = page.waitForRequest(CHAT);
      await go();
      const [decision] = JSON.parse((await sent).postData()).decisions;
      expect(decision.verdict === "approved" && decision.arguments === HIDING, JSON.stringify(decision));
      await idle(page);
    });
    await context.close();
  }
});
await server.close();
other.close();
