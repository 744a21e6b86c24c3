// The chat page in a browser that lacks newer functions, or without a clipboard, against `advisor serve`.
// Usage: node older.mjs ADVISOR CHROMIUM [FOLDER]

import { ask, expect, idle, run } from "./browser.mjs";
import { model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);

const TEXT = "A [link](https://example.org/).\n\n```rust\nfn main() {}\n```\n";
const other = await model(() => pieces(TEXT));
const server = await serve(advisor, ["--provider", "openai", "--model", "m", "--base-url", other.url], { OPENAI_API_KEY: "none" });

await run({ name: "older", url: `${server.url}/`, executablePath, folder }, async ({ open, test }) => {
  const { context, page } = await open();

  await test("links and code without newer functions, and no button without a clipboard", async () => {
    await context.addInitScript(() => {
      delete URL.parse;
      delete Promise.withResolvers;
      delete Navigator.prototype.clipboard;
    });
    await page.reload();
    await ask(page, "Show me.");
    await page.waitForSelector(".assistant .code pre >> text=fn main");
    await idle(page);
    expect((await page.locator(".assistant a").getAttribute("href")) === "https://example.org/", "the link is missing");
    expect((await page.getByRole("button", { name: "Copy" }).count()) === 0, "a button does nothing");
    expect((await page.$$(".waiting, .error:not(:empty)")).length === 0, "the answer has failed");
    await context.close();
  });

  await test("code is copied, and a refusal of the browser is said", async () => {
    const { context: another, page: shown } = await open(new URL(page.url()).hash);
    await another.grantPermissions(["clipboard-read", "clipboard-write"]);
    await shown.getByRole("button", { name: "Copy" }).click();
    await shown.getByRole("button", { name: "Copied" }).waitFor();
    expect((await shown.evaluate(() => navigator.clipboard.readText())).includes("fn main"), "other text is copied");
    await shown.evaluate(() => (navigator.clipboard.writeText = () => Promise.reject(new Error("refused"))));
    await shown.getByRole("button", { name: "Copied" }).click();
    await shown.getByRole("button", { name: "Not copied" }).waitFor();
    await another.close();
  });
});
await server.close();
other.close();
