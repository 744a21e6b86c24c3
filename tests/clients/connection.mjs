// Connections of the chat page that break, and a server that is killed.
// Usage: node connection.mjs ADVISOR CHROMIUM [FOLDER]

import { ask, expect, expectAccessible, hold as holdRequests, idle, last, run } from "./browser.mjs";
import { call, gate, model, pieces } from "./model.mjs";
import { network, restartable } from "./serve.mjs";

const [advisor, executablePath, folder] = process.argv.slice(2);

const CHAT = /\/api\/chat\?/;
const STOP = /\/stop$/;
const READ = /\/api\/conversations\/[^/?]+\?view=page$/;

/** Holds back the rest of an answer, or the whole one. */
let held = gate();
const answer = (messages) => {
  const asked = messages.at(-1);
  if (asked.role === "tool") return [...pieces("It is warm. "), held.opened, ...pieces("That is all.")];
  switch (asked.content) {
    case "Wait.": return [held.opened, ...pieces("Here I am.")];
    case "Half.": return [...pieces("This is one half, "), held.opened, ...pieces("and this the other.")];
    case "Look.": return [...pieces("Let me look."), ...call("c1", "current_time", ["{}"])];
    default: return pieces(`Heard: ${asked.content}`);
  }
};
const other = await model(answer);
const server = await restartable(advisor, ["--provider", "openai", "--model", "m", "--base-url", other.url], { OPENAI_API_KEY: "none" });

const between = await network(server.url);

const hold = () => (held = gate());
const articles = (page, count) => page.waitForFunction((count) => document.querySelectorAll("article").length === count, count);
const isAsked = (content) => other.questions.filter((messages) => messages.at(-1).content === content).length;

/** Waits until the model has this question more often than before. */
const asked = async (content, before = 0) => {
  for (let tries = 0; isAsked(content) <= before; tries++) {
    expect(tries < 600, `the model was not asked: ${content}`);
    await new Promise((done) => setTimeout(done, 50));
  }
};

const busy = (page) => page.waitForFunction(() => !document.querySelector("#stop").hidden);

/** Notes the messages that the page sends. The returned function returns those of the requests so far. */
const submissions = (page) => {
  const sent = [];
  page.on("request", (request) => CHAT.test(request.url()) && sent.push(request.postDataJSON().message));
  return async () => {
    // Requests are noted in their order.
    await page.evaluate(() => fetch("healthz"));
    return sent;
  };
};

await run({ name: "connection", url: `${between.url}/`, executablePath, folder, expected: "net::ERR_" }, async ({ open, test, picture }) => {
  const { context, page } = await open("", { bypassCSP: true });

  await test("a message that is sent without a network is sent when it is back", async () => {
    await context.setOffline(true);
    await ask(page, "Hello.");
    await page.waitForSelector("article:last-child .waiting >> text=There is no connection");
    await picture(page, "no-connection");
    await expectAccessible(page);
    await context.setOffline(false);
    await page.waitForSelector("article:last-child >> text=Heard: Hello.");
    await idle(page);
    expect((await page.$$(".waiting")).length === 0, "the broken connection is still said");
    await articles(page, 2);
  });

  await test("a network that is cut before the head of the answer: the turn is joined, and runs once", async () => {
    hold();
    await ask(page, "Wait.");
    await asked("Wait.");
    between.cut();
    await page.waitForSelector("article:last-child .waiting");
    held.release();
    between.mend();
    await page.waitForSelector("article:last-child >> text=Here I am.");
    await idle(page);
    expect(isAsked("Wait.") === 1, `the model was asked ${isAsked("Wait.")} times`);
    await page.reload();
    await articles(page, 4);
    await page.waitForSelector("#conversations li", { state: "attached" });
    expect((await page.$$("#conversations li")).length === 1, "there is a second conversation");
  });

  await test("a turn that is stopped before the head of its answer runs no more", async () => {
    hold();
    const asking = isAsked("Wait.");
    const sent = submissions(page);
    await ask(page, "Wait.");
    await asked("Wait.", asking);
    const { release } = await holdRequests(page, STOP);
    await page.click("#stop");
    await idle(page);
    await page.waitForSelector("article:last-child >> text=This answer was stopped.");
    // The next turn begins behind the stop, even if that takes long.
    await ask(page, "Goes it on?");
    await busy(page);
    expect((await sent()).join() === "Wait.", `the page sent ${await sent()}`);
    release();
    await page.waitForSelector("article:last-child >> text=Heard: Goes it on?");
    await idle(page);
    expect(isAsked("Wait.") <= asking + 1, "the stopped turn was asked again");
    held.release();
  });

  await test("a message waits for every stop before it, not for ever, and can be stopped meanwhile", async () => {
    hold();
    const { context: separate, page } = await open();
    await page.clock.install();
    await page.reload();
    const sent = submissions(page);
    const { release } = await holdRequests(page, STOP);
    const unanswered = page.waitForRequest(STOP);
    await ask(page, "Half.");
    await page.waitForSelector("article:last-child >> text=This is one half,");
    await page.clock.pauseAt(Date.now() + 3_600_000);
    await page.click("#stop");
    await unanswered;
    await page.route(STOP, (route) => route.fulfill({ status: 204 }), { times: 1 });
    const answered = page.waitForResponse(STOP);
    await page.click("#stop");
    await answered;
    held.release();
    await idle(page);
    await ask(page, "Never sent.");
    await busy(page);
    await page.click("#stop");
    await page.waitForSelector("article:last-child >> text=This answer was stopped.");
    await idle(page);
    await ask(page, "Goes it on?");
    await busy(page);
    expect((await sent()).join() === "Half.", `the page sent ${await sent()}`);
    await page.clock.fastForward(10_000);
    await page.waitForSelector("article:last-child >> text=Heard: Goes it on?");
    await idle(page);
    expect((await sent()).join() === "Half.,Goes it on?", `the page sent ${await sent()}`);
    release();
    await separate.close();
  });

  await test("a turn that the server does not know any more is read from memory", async () => {
    hold();
    await ask(page, "Half.");
    await page.waitForSelector("article:last-child >> text=This is one half,");
    await page.route(/\/stream\?/, (route) => route.fulfill({ status: 204 }));
    // Memory cannot be read at first, either.
    const unread = page.waitForEvent("requestfailed", (request) => READ.test(request.url()));
    between.cut();
    await page.waitForSelector("article:last-child .waiting");
    await unread;
    held.release();
    const done = async () => (await (await fetch(`${server.url}/api/conversations/${new URL(page.url()).hash.slice(1)}`)).json()).running === null;
    while (!(await done())) await new Promise((next) => setTimeout(next, 50));
    between.mend();
    await idle(page);
    expect((await last(page)).includes("This is one half, and this the other."), await last(page));
    expect((await last(page)).split("one half").length === 2, `the answer is there twice: ${await last(page)}`);
    expect((await last(page)).includes("The connection was lost."), await last(page));
    await page.unroute(/\/stream\?/);
  });

  await test("an event that the page cannot show is a failure, and no broken connection", async () => {
    const { context: separate, page } = await open();
    let joins = 0;
    await page.route(/\/stream\?/, (route) => {
      joins += 1;
      return route.fulfill({ status: 204 });
    });
    const body = 'data: {"type":"rendered","block":"1.0","keep":0,"nodes":7,"rest":""}\n\n';
    await page.route(CHAT, (route) => route.fulfill({ contentType: "text/event-stream", body }), { times: 1 });
    await ask(page, "Broken.");
    await page.waitForSelector("article:last-child .error[role=alert]");
    await idle(page);
    expect(joins === 0, `the turn was joined ${joins} times`);
    await separate.close();
  });

  await test("a server that is killed: what memory has is shown, and the end is marked", async () => {
    hold();
    await ask(page, "Look.");
    await page.waitForSelector("article:last-child >> text=It is warm.");
    await server.restart();
    await idle(page);
    const text = await last(page);
    expect(text.includes("Let me look.") && text.includes("Used tool: current_time"), text);
    expect(text.includes("This answer was interrupted.") && text.includes("The connection was lost."), text);
    expect(!text.includes("[interrupted]"), text);
    await picture(page, "killed");
    await expectAccessible(page);
    held.release();
  });

  await test("the conversation goes on after the server was killed", async () => {
    await page.locator("article.user").last().getByText("Answer again").click();
    await page.waitForSelector("article:last-child >> text=That is all.");
    await idle(page);
    const count = (await page.$$("article")).length;
    await page.reload();
    await articles(page, count);
    expect((await last(page)).includes("That is all."), await last(page));
  });
});
between.close();
await server.close();
other.close();
