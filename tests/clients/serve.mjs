// A separate server, for tests that need a certain one.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Starts `advisor serve` with these arguments. Returns its address, and a function that ends it. */
export const serve = async (advisor, args = [], env = {}) => {
  const data = await mkdtemp(join(tmpdir(), "advisor-"));
  const all = ["serve", "--listen", "127.0.0.1:0", "--memory", join(data, "conversations.sqlite"), ...args];
  const { url, close } = await started(advisor, all, env);
  return { url, close: () => close().then(() => rm(data, { recursive: true })) };
};

/** Starts a program that prints its address. Returns the address, and a function that ends it. */
export const started = async (program, args, env = {}) => {
  const server = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((done) => server.once("exit", done));
  const close = async () => {
    server.kill();
    await ended;
  };
  for await (const line of createInterface({ input: server.stdout })) {
    const url = line.match(/^(http:\/\/[^/]*)\//)?.[1];
    if (url) return { url, close };
  }
  await close();
  throw new Error(`${program} has ended`);
};
