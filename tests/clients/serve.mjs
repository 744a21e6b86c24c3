// A separate server, for tests that need a certain one.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
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

/** Starts `advisor serve` like `serve`. The function `restart` kills it, and starts it again with its address and file. */
export const restartable = async (advisor, args = [], env = {}) => {
  const data = await mkdtemp(join(tmpdir(), "advisor-"));
  const start = (address) => started(advisor, ["serve", "--listen", address, "--memory", join(data, "conversations.sqlite"), ...args], env);
  let server = await start("127.0.0.1:0");
  const { url } = server;
  const restart = async () => {
    await server.close("SIGKILL");
    server = await start(new URL(url).host);
  };
  return { url, restart, close: () => server.close().then(() => rm(data, { recursive: true })) };
};

/** Starts a network in front of a server. While it is cut, no connection goes through it. */
export const network = async (url) => {
  const { hostname, port } = new URL(url);
  const sockets = new Set();
  let isCut = false;
  const server = createServer((socket) => {
    if (isCut) return socket.destroy();
    const behind = connect(port, hostname);
    for (const [one, other] of [[socket, behind], [behind, socket]]) {
      sockets.add(one);
      one.on("error", () => {}).on("close", () => sockets.delete(one) && other.destroy());
      one.pipe(other);
    }
  });
  server.listen(0, hostname);
  await once(server, "listening");
  const cut = () => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  const mend = () => (isCut = false);
  const close = () => {
    cut();
    server.close();
  };
  return { url: `http://${hostname}:${server.address().port}`, cut, mend, close };
};

/** Starts a program that prints its address. Returns the address, and a function that ends it by a signal. */
export const started = async (program, args, env = {}) => {
  const server = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((done) => server.once("exit", done));
  const close = async (signal = "SIGTERM") => {
    server.kill(signal);
    await ended;
  };
  for await (const line of createInterface({ input: server.stdout })) {
    const url = line.match(/^(http:\/\/[^/]*)\//)?.[1];
    if (url) return { url, close };
  }
  await close();
  throw new Error(`${program} has ended`);
};
