// An `advisor serve` of its own, for tests that need a certain model.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Starts a server with these arguments. Returns its address, and a function that ends it. */
export const serve = async (advisor, args = [], env = {}) => {
  const data = await mkdtemp(join(tmpdir(), "advisor-"));
  const all = ["serve", "--listen", "127.0.0.1:0", "--memory", join(data, "conversations.sqlite"), ...args];
  const server = spawn(advisor, all, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((done) => server.once("exit", done));
  const close = async () => {
    server.kill();
    await ended;
    await rm(data, { recursive: true });
  };
  for await (const line of createInterface({ input: server.stdout })) {
    const url = line.match(/^(http:\/\/[^/]*)\//)?.[1];
    if (url) return { url, close };
  }
  await close();
  throw new Error("advisor serve has ended");
};
