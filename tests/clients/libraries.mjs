// Libraries and a program of other languages against `advisor serve`, whose model has written answers: two turns with a
// tool, an answer that breaks off, a conversation that is too long, and a history that the server does not have.
// Usage: node libraries.mjs ADVISOR PYTHON JARS AIDER, where JARS has the packages of LangChain4j

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { CUT, call, model, pieces } from "./model.mjs";
import { serve } from "./serve.mjs";
import { expect, finish, test } from "./tests.mjs";

const [advisor, python, jars, aider] = process.argv.slice(2);
const TOO_LONG = { status: 400, error: { message: "The input has too many tokens.", type: "invalid_request_error", code: "context_length_exceeded" } };

const text = ({ content }) => (Array.isArray(content) ? content.map((part) => part.text).join("") : content);
const answer = (messages) => {
  const last = messages.at(-1);
  const asked = text(messages.findLast(({ role }) => role === "user"));
  if (last.role === "tool") return asked === "Look for too long." ? TOO_LONG : pieces(`The tool says: ${text(last)}`);
  switch (asked) {
    case "How is the weather?":
    case "Look for too long.": return call("c1", "demo_weather", ['{"city": ', '"Oslo"}']);
    case "What have I asked?": return pieces(messages.map((message) => `${message.role}: ${message.tool_calls ? "a call" : text(message)}`).join("\n"));
    case "Break off.": return [...pieces("This is only the beginning of "), CUT];
    case "This is too long.": return TOO_LONG;
    default: return pieces("Heard.");
  }
};
const other = await model(answer);
const server = await serve(advisor, ["--provider", "openai", "--model", "m", "--base-url", other.url], { OPENAI_API_KEY: "none" });

/** Runs a program to its end. Returns its status, and its output if it is not shown. */
const run = async (command, args, options = {}) => {
  const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"], ...options });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data) => (output += data));
  const [status] = await once(child, "close");
  return { status, output };
};

await test("libraries for Python", async () => {
  expect((await run(python, ["libraries.py", server.url])).status === 0, "a test has failed");
});

await test("libraries for Java", async () => {
  expect((await run("java", ["-cp", join(jars, "*"), "langchain4j/LangChain4j.java", server.url])).status === 0, "a test has failed");
});

// Each request of aider has instructions and examples of its own, in one of two forms.
for (const [form, use_system_prompt] of [["as instructions", true], ["as a history", false]]) {
  await test(`aider, which sends its own prompt ${form}: a 400, and its repository is as it was`, async (conversation) => {
    const folder = await mkdtemp(join(tmpdir(), "aider-"));
    const git = (...args) => execFileSync("git", ["-C", folder, ...args], { encoding: "utf8" });
    git("init", "--quiet");
    await writeFile(join(folder, "greet.py"), 'print("Hello")\n');
    git("add", ".");
    git("-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", "Greet");
    const settings = [{ name: "openai/chain", edit_format: "whole", use_system_prompt, extra_params: { extra_headers: { "x-conversation-id": conversation } } }];
    const file = join(folder, ".git", "settings.yml");
    await writeFile(file, JSON.stringify(settings));
    const options = ["--model", "openai/chain", "--openai-api-base", `${server.url}/v1`, "--openai-api-key", "none", "--model-settings-file", file];
    const quiet = ["show-model-warnings", "analytics", "check-update", "gitignore", "pretty", "show-release-notes", "auto-lint"].map((name) => `--no-${name}`);
    const asked = other.questions.length;
    const env = { ...process.env, HOME: join(folder, ".git"), LITELLM_LOCAL_MODEL_COST_MAP: "True" };
    const { output } = await run(aider, [...options, ...quiet, "--yes-always", "--message", "Write it in French.", "greet.py"], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
    expect(output.includes("litellm.BadRequestError"), output);
    expect(other.questions.length === asked, "the model was asked");
    expect((await readFile(join(folder, "greet.py"), "utf8")) === 'print("Hello")\n', "the file is another one");
    expect(git("log", "--format=%s") === "Greet\n" && git("diff", "HEAD") === "", git("log"));
    await rm(folder, { recursive: true });
  });
}

await server.close();
other.close();
finish();
