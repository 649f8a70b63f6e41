#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// client.mjs SESSION PROMPT: client.py in Node. It goes on reading while a person thinks, closes a question that another
// client has answered, and continues after its last line if the connection is lost. The types of the lines are in
// share/plenum/plenum-protocol.d.ts.
import { randomUUID } from "node:crypto";
import { createConnection } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const path = process.env.PLENUM_SOCKET || `${process.env.XDG_RUNTIME_DIR ?? "/run"}/plenum/plenum.sock`;
const [session, text] = process.argv.slice(2);
if (text === undefined) {
	console.error("usage: client.mjs SESSION PROMPT");
	process.exit(64);
}
const attach = { subtype: "plenum_attach", session, name: "example", tag: true, partial: false };
const prompt = { type: "user", uuid: randomUUID(), message: { role: "user", content: text } };
let cut = false;
const questions = new Map(); // open ones: their AbortControllers, by id
let asked = Promise.resolve(); // one at a time

const typed = []; // lines that no question has taken
let waiting; // the question that takes the next one
const terminal = createInterface({ input: process.stdin });
terminal.on("line", (line) => (waiting ? waiting(line) : typed.push(line)));

// Returns undefined if the question is withdrawn.
function readLine(signal) {
	return new Promise((resolve) => {
		if (signal.aborted || typed.length) return resolve(signal.aborted ? undefined : typed.shift());
		signal.onabort = () => resolve();
		waiting = resolve;
	}).finally(() => (waiting = undefined));
}

async function question(send, id, request, signal) {
	if (signal.aborted) return;
	process.stdout.write(`${request.tool_name} ${JSON.stringify(request.input)}? [y/n] `);
	const line = await readLine(signal);
	questions.delete(id);
	if (line === undefined) return;
	const response = line === "y" ? { behavior: "allow" } : { behavior: "deny", message: "the person said no" };
	send({ type: "control_response", response: { subtype: "success", request_id: id, response } });
}

function ask(send, id, request) {
	const open = new AbortController();
	questions.set(id, open);
	asked = asked.then(() => question(send, id, request, open.signal));
}

// Returns the turn_ended of the prompt.
function take(send, line) {
	if (line.plenum_seq) attach.replay = { after: line.plenum_seq };
	if (line.type === "control_response" && line.response.subtype === "error") {
		console.error(line.response.error);
		process.exit(1);
	} else if (line.type === "control_response") {
		// of the attach; after a crash of the daemon the turn does not go on
		const now = line.response.response;
		cut = now.replay_cut && !["busy", "asking"].includes(now.state);
	} else if (line.code === "duplicate_request" && cut) {
		console.error("the turn was cut");
		process.exit(1);
	} else if (line.type === "control_request" && line.request.subtype === "can_use_tool") {
		ask(send, line.request_id, line.request);
	} else if (line.type === "control_cancel_request") {
		questions.get(line.request_id)?.abort();
	} else if (line.type === "assistant") {
		for (const block of line.message.content) if (block.type === "text") console.log(block.text);
	} else if (line.event === "turn_ended" && line.uuids.includes(prompt.uuid)) {
		return line;
	}
	return undefined;
}

// One connection, until the turn has ended; undefined if the daemon closed before.
async function connection() {
	const socket = createConnection(path);
	const send = (line) => socket.write(JSON.stringify(line) + "\n");
	let rest = [];
	try {
		send({ type: "control_request", request_id: "attach", request: attach });
		send(prompt);
		for await (const data of socket) {
			rest.push(data);
			if (!data.includes(10)) continue; // a long line comes in parts
			const lines = Buffer.concat(rest).toString().split("\n");
			rest = [Buffer.from(lines.pop())];
			for (const line of lines) {
				const ended = take(send, JSON.parse(line));
				if (ended) return ended;
			}
		}
	} finally {
		for (const open of questions.values()) open.abort();
		socket.destroy();
	}
	return undefined;
}

let ended;
while (!ended) {
	ended = await connection().catch((e) => console.error(`${path}: ${e.message}`));
	if (!ended) await sleep(1000);
}
terminal.close();
process.exitCode = ended.is_error ? 1 : 0;
