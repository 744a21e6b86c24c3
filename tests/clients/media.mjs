// Answers without a text in the chat page, against `advisor serve`.
// Usage: node media.mjs ADVISOR CHROMIUM [FOLDER]

import { ask, expect, expectAccessible, idle, last, run } from "./browser.mjs";
import { model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);
const NOTE = "This answer has no text.";

const image = (url) => ({ type: "image_url", image_url: { url } });
const answer = (messages) => {
  switch (messages.at(-1).content) {
    case "Draw.": return [{ images: [image("data:image/png;base64,AQID"), image(`${other.url}/drawn.png`)] }];
    default: return pieces("This has one.");
  }
};
const other = await model(answer);
const server = await serve(advisor, ["--provider", "openai", "--model", "m", "--base-url", other.url], { OPENAI_API_KEY: "none" });

await run({ name: "media", url: `${server.url}/`, executablePath, folder }, async ({ open, test, picture }) => {
  const { page } = await open("", { bypassCSP: true });

  await test("an answer that is a picture alone says that it has no text", async () => {
    await ask(page, "Draw.");
    await page.waitForSelector(`article:last-child >> text=${NOTE}`);
    await idle(page);
    expect((await page.$$("#messages img")).length === 0, "the picture is loaded");
  });

  await test("the conversation opens again, and goes on", async () => {
    await page.reload();
    await page.waitForSelector(`article.assistant >> text=${NOTE}`);
    await page.waitForFunction(() => document.querySelector("#title").textContent === "Draw.");
    await ask(page, "And with a text?");
    await page.waitForFunction(() => document.querySelectorAll("article").length === 4);
    await idle(page);
    expect((await last(page)).includes("This has one.") && !(await last(page)).includes(NOTE), await last(page));
  });

  await test("a message of a user that is a picture alone says so, too", async () => {
    const headers = { "content-type": "application/json", "x-conversation-id": "picture" };
    const content = [image("data:image/png;base64,AQID")];
    const asked = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify({ messages: [{ role: "user", content }] }) });
    expect(asked.ok, await asked.text());
    const { context, page: other } = await open("#picture", { bypassCSP: true });
    await other.waitForSelector("article.user .note >> text=This message has no text.");
    await expectAccessible(other);
    await context.close();
  });

  await test("the note is no part of other answers", async () => {
    await page.reload();
    await page.waitForSelector("article:last-child .markdown p");
    expect((await page.getByText(NOTE).count()) === 1, "the note is there again");
    await picture(page, "media");
    await expectAccessible(page);
    expect(other.strangers.length === 0, `asked elsewhere for ${other.strangers}`);
  });
});
await server.close();
other.close();
