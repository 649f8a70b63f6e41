// SPDX-License-Identifier: MIT
// A minimal relay of several clients to one child, for comparison: relay.mjs SOCKET PROGRAM ARG...
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

const [path, program, ...args] = process.argv.slice(2);
const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
const clients = new Set();
const write = (to, line) => to.write(JSON.stringify(JSON.parse(line)) + "\n");
createInterface({ input: child.stdout }).on("line", (line) => clients.forEach((c) => write(c, line)));
createServer((c) => {
  clients.add(c);
  c.on("close", () => clients.delete(c)).on("error", () => {});
  createInterface({ input: c }).on("line", (line) => write(child.stdin, line));
}).listen(path);
child.on("exit", () => process.exit());
process.on("SIGTERM", () => child.kill() && process.exit());
