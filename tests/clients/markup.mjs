// Markup of a model, of its tools and of names on the page: nothing runs, and nothing is loaded from elsewhere.
// Usage: node markup.mjs ADVISOR CHROMIUM [FOLDER]

import { ask, expect, idle, run } from "./browser.mjs";
import { model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);

/** Texts that would run a script or load something, if anything took them for markup. */
const hostile = (elsewhere) => [
  "<script>hit('script')</script>",
  `<script src="${elsewhere}/script.js"></script>`,
  "<img src=x onerror=\"hit('img')\">",
  `<img src="${elsewhere}/pixel.png">`,
  "<svg onload=\"hit('svg')\"><animate onbegin=\"hit('animate')\" attributeName=x dur=1s></svg>",
  `<svg><use href="${elsewhere}/use.svg#a"></use></svg>`,
  "<iframe srcdoc=\"<script>parent.hit('frame')</script>\"></iframe>",
  `<iframe src="${elsewhere}/frame"></iframe>`,
  `<style>@import url(${elsewhere}/style.css); body { display: none }</style>`,
  `<link rel=stylesheet href="${elsewhere}/link.css">`,
  `<meta http-equiv=refresh content="0;url=${elsewhere}/refresh">`,
  `<base href="${elsewhere}/">`,
  `<video src="${elsewhere}/video" onerror="hit('video')" autoplay></video>`,
  `<form action="${elsewhere}/form"><input name=a autofocus onfocus="hit('focus')"></form>`,
  "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=hit('math')&gt;\">",
  "<b><i onclick=hit('broken')>broken</b></i></div></article><!--",
  "\"><script>hit('quote')</script>",
  "<template><script>hit('template')</script></template>",
  "[click](javascript:hit('link'))",
  "[click](JaVa&#10;ScRiPt:hit('entity'))",
  "[click](data:text/html,<script>hit('data')</script>)",
  "[click](<javascript:hit('angle')>)",
  "<javascript:hit('auto')>",
  `![remote](${elsewhere}/markdown.png)`,
  "![svg](data:image/svg+xml,<svg/onload=hit('picture')>)",
  `[![in a link](${elsewhere}/nested.png)](javascript:hit('nested'))`,
  "![title](x \"onerror=hit('title')\")",
  "`<script>hit('code')</script>`",
  "```html\n<script>hit('block')</script>\n```",
  "| <img src=x onerror=hit('cell')> | [x](javascript:hit('table')) |\n|---|---|\n| <script>hit('row')</script> | a |",
  "> <script>hit('citation')</script>",
  "# <svg/onload=hit('heading')>",
  "[x]: javascript:hit('definition')\n\n[x]",
];

const other = await model((messages) => {
  const texts = hostile(other.url);
  if (messages.at(-1).role === "tool") return pieces(texts.join("\n\n"));
  const call = (index, name, args) => ({
    tool_calls: [{ index, id: `<img src=x onerror=hit(${index})>`, type: "function", function: { name, arguments: args } }],
  });
  return [
    ...pieces(texts.join("\n"), "reasoning_content"),
    ...pieces(texts.join(" ")),
    call(0, "demo_weather", JSON.stringify({ city: texts.join(" ") })),
    call(1, "<img src=x onerror=hit('tool')>", JSON.stringify({ [texts[2]]: texts[0] })),
    call(2, "demo_weather", `{"city": "${texts[0]}`),
  ];
});
const server = await serve(advisor, ["--provider", "openai", "--base-url", `${other.url}/v1`, "--model", "m"], { OPENAI_API_KEY: "none" });
const id = "<img src=x onerror=hit('id')><script>hit('id')</script>";

/** Opens the page, and notes what runs, what a policy refuses, and where requests go. */
const watched = async (open, path) => {
  const notes = [];
  const { context, page } = await open("about:blank");
  await context.exposeFunction("hit", (what) => notes.push(`ran: ${what}`));
  await context.exposeFunction("refused", (what) => notes.push(`refused: ${what}`));
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => refused(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  page.on("request", (request) => request.url().startsWith(`${server.url}/`) || notes.push(`request: ${request.url()}`));
  page.on("framenavigated", (frame) => frame.url().startsWith(`${server.url}/`) || notes.push(`navigated: ${frame.url()}`));
  await page.goto(`${server.url}/${path}`);
  return { page, notes };
};

/** Checks that the messages have no element that could run or load anything, and that the texts are shown. */
const expectHarmless = async (page, notes, state) => {
  const found = await page.evaluate(() => {
    const all = [...document.querySelectorAll("main *, aside *")];
    const attributes = all.flatMap((element) => [...element.attributes].map((attribute) => `${element.localName} ${attribute.name}`));
    return {
      elements: all.map((element) => element.localName).filter((name) => /^(script|img|svg|math|iframe|object|embed|style|link|meta|base|video|audio|input|template|form)$/.test(name)),
      handlers: attributes.filter((attribute) => / (on.*|style|srcdoc|src|action|formaction)$/.test(attribute)),
      links: all.filter((element) => element.localName === "a" && element.closest("#messages")).map((link) => link.protocol),
    };
  });
  expect(found.elements.join() === "form,input", `${state}: elements ${found.elements}`);
  expect(found.handlers.length === 0, `${state}: attributes ${found.handlers}`);
  expect(found.links.every((protocol) => ["http:", "https:", "mailto:"].includes(protocol)), `${state}: links ${found.links}`);
  expect(notes.length === 0, `${state}: ${notes}`);
  expect(other.strangers.length === 0, `${state}: asked elsewhere for ${other.strangers}`);
};

await run({ name: "markup", url: "", executablePath, folder, expected: "requires 'TrustedHTML'" }, async ({ open, test, picture }) => {
  await fetch(`${server.url}/api/chat`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ message: hostile(other.url)[0], conversation: id }),
  }).then((response) => response.text());
  const { page, notes } = await watched(open, `#${encodeURIComponent(id)}`);

  await test("a stored conversation whose id and title are markup", async () => {
    await page.waitForSelector(".assistant .markdown a.picture");
    await page.waitForSelector("#conversations a[aria-current]");
    expect((await page.textContent("#title")).includes("<script>"), "the title is not shown as text");
    await expectHarmless(page, notes, "stored");
  });

  await test("text, reasoning, names, arguments and results that stream", async () => {
    await ask(page, hostile(other.url).join("\n"));
    await page.waitForSelector("article:last-child details.reasoning", { state: "attached" });
    await expectHarmless(page, notes, "streaming");
    await idle(page);
    await expectHarmless(page, notes, "complete");
    const answer = await page.textContent("article:last-child");
    for (const part of ["hit('script')", "hit('img')", "hit('frame')", "hit('block')", "hit('tool')", "Tool failed: <img"]) {
      expect(answer.includes(part), `${part} is not shown`);
    }
  });

  await test("nothing runs when everything is opened and clicked", async () => {
    for (const summary of await page.$$("summary")) await summary.click();
    for (const link of await page.$$("#messages a")) {
      expect((await link.getAttribute("target")) === "_blank" && (await link.getAttribute("rel")).includes("noopener"), "a link stays here");
    }
    for (const text of await page.$$("#messages span")) await text.dispatchEvent("click");
    await expectHarmless(page, notes, "clicked");
    await picture(page, "hostile");
  });

  await test("a page that is loaded again", async () => {
    await page.reload();
    await page.waitForSelector("article:last-child .markdown a.picture");
    await expectHarmless(page, notes, "reloaded");
  });

  await test("the policy refuses markup, even from the page's own code", async () => {
    const refused = await page.evaluate(() => {
      try {
        document.createElement("div").innerHTML = "<b></b>";
      } catch (error) {
        return error.name;
      }
    });
    expect(refused === "TypeError", `innerHTML works: ${refused}`);
  });
});
await server.close();
other.close();
