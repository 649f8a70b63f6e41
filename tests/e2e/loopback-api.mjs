// SPDX-License-Identifier: MIT
// A Messages API on loopback, for the real CLI: the "model" does what the last prompt tells it to.
//
//   node loopback-api.mjs [LOG [SCRIPT]]   prints "listening on http://127.0.0.1:PORT" and serves until it is killed
//
// SCRIPT is a JSON file, prompt: the prompt with the words below that is meant by it.
// A prompt may hold these words; without any the answer is "echo: " and the prompt.
//   @tool NAME {json}@    asks for that tool; several: several calls in one message; the text after it has the results
//   @next NAME {json}@    asks for that tool when the results of the calls before have come; several: one after another
//   @long N@              a text of N letters
//   @slow MS@             waits so long before each piece of the text
//   @pieces N@            the text comes in so many pieces (default 20)
//   @until FILE@          waits for that file after the first piece of the text
//   @say TEXT@            that text, after the tools
//   @history@             the earlier prompts of this conversation, as JSON
//   @fail STATUS@         an API error with that HTTP status
// Inside a JSON string, for the prompt of a subagent, # stands for @.
import fs from 'node:fs';
import http from 'node:http';

const script = process.argv[3] ? JSON.parse(fs.readFileSync(process.argv[3], 'utf8')) : {};
const log = process.argv[2] ? fs.createWriteStream(process.argv[2], { flags: 'a' }) : null;
const note = (entry) => log?.write(JSON.stringify(entry) + '\n');
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
let counter = 0;

const blocksOf = (message) =>
	typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : message.content;

/** What a person typed in a block: without the reminders and remarks that the CLI adds. */
const typed = (block) =>
	block.type !== 'text' ? '' : block.text
		.replace(/<system-reminder>[\s\S]*?<\/system-reminder>/g, '')
		.replace(/\[Request interrupted by user[^\]]*\]/g, '')
		.trim();

/** The last prompt, how many rounds of tool results came after it, the last of them, and the prompts before. */
function readConversation(messages) {
	const prompts = [];
	let rounds = 0;
	let results = [];
	for (const message of messages.filter(({ role }) => role === 'user')) {
		const blocks = blocksOf(message);
		const here = blocks.filter((block) => block.type === 'tool_result');
		if (here.length > 0) rounds++, results = here;
		// After an interrupt the CLI puts several prompts, and the results before them, into one message.
		for (const text of blocks.map(typed).filter((text) => text !== '')) prompts.push(text), rounds = 0;
	}
	const prompt = prompts.pop() ?? '';
	return { prompt: script[prompt] ?? prompt, rounds, earlier: prompts, results };
}

function calls(prompt, word) {
	const mark = prompt.includes('@tool ') || prompt.includes('@next ') ? '@' : '#';
	const pattern = new RegExp(`${mark}${word} (\\w+) (\\{.*?\\})${mark}`, 'g');
	return [...prompt.matchAll(pattern)].map(([, name, input]) => ({
		type: 'tool_use', id: `toolu_${String(++counter).padStart(6, '0')}`, name, input: JSON.parse(input),
	}));
}

const awaited = (prompt) => prompt.match(/@until (\S+?)@/)?.[1];
const number = (prompt, word) => Number(prompt.match(new RegExp(`[@#]${word} (\\d+)[@#]`))?.[1] ?? 0);
const words = (text) => [{ type: 'text', text }];
const flat = (result) =>
	typeof result.content === 'string' ? result.content : (result.content ?? []).map((block) => block.text ?? '').join('');

function answer({ prompt, rounds, earlier, results }) {
	const first = calls(prompt, 'tool');
	const next = calls(prompt, 'next');
	if (first.length > 0 && rounds === 0) return first;
	const due = rounds - (first.length > 0 ? 1 : 0);
	if (due >= 0 && due < next.length) return [next[due]];
	const said = prompt.match(/@say ([^@]*)@/)?.[1];
	if (said) return words(said);
	if (rounds > 0)
		return words('tools done: ' + JSON.stringify(results.map((result) =>
			({ error: result.is_error ?? false, text: flat(result).slice(0, 2000) }))));
	if (prompt.includes('@history@')) return words('history: ' + JSON.stringify(earlier));
	if (number(prompt, 'long') > 0) return words('x'.repeat(number(prompt, 'long')));
	return words('echo: ' + prompt.slice(-200));
}

async function stream(res, base, blocks, stop, prompt) {
	const send = (type, rest) => res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`);
	res.writeHead(200, { 'content-type': 'text/event-stream' });
	send('message_start', { message: base });
	for (const [index, block] of blocks.entries()) {
		if (block.type === 'text') {
			const step = Math.max(1, Math.ceil(block.text.length / (number(prompt, 'pieces') || 20)));
			send('content_block_start', { index, content_block: { type: 'text', text: '' } });
			for (let from = 0; from < block.text.length && !res.destroyed; from += step) {
				if (number(prompt, 'slow') > 0) await pause(number(prompt, 'slow'));
				const delta = { type: 'text_delta', text: block.text.slice(from, from + step) };
				send('content_block_delta', { index, delta });
				while (awaited(prompt) && !fs.existsSync(awaited(prompt)) && !res.destroyed) await pause(20);
			}
		} else {
			send('content_block_start', { index, content_block: { ...block, input: {} } });
			const delta = { type: 'input_json_delta', partial_json: JSON.stringify(block.input) };
			send('content_block_delta', { index, delta });
		}
		send('content_block_stop', { index });
	}
	send('message_delta', { delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 20 } });
	send('message_stop', {});
	res.end();
}

async function messages(res, question) {
	const conversation = readConversation(question.messages);
	const status = number(conversation.prompt, 'fail');
	const json = (code, body) => res.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
	note({ model: question.model, ...conversation, results: conversation.results.length });
	if (status > 0) {
		const error = { type: 'invalid_request_error', message: `asked to fail with ${status}` };
		return json(status, { type: 'error', error });
	}

	const blocks = answer(conversation);
	const stop = blocks.some((block) => block.type === 'tool_use') ? 'tool_use' : 'end_turn';
	const usage = { input_tokens: 10, output_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
	const base = {
		id: `msg_${++counter}`, type: 'message', role: 'assistant', model: question.model, content: [],
		stop_reason: null, stop_sequence: null, usage,
	};
	if (question.stream) return stream(res, base, blocks, stop, conversation.prompt);
	return json(200, { ...base, content: blocks, stop_reason: stop });
}

async function serve(req, res) {
	const parts = [];
	for await (const part of req) parts.push(part);
	const path = req.url.split('?')[0];
	if (path === '/v1/messages') return messages(res, JSON.parse(Buffer.concat(parts).toString()));
	res.writeHead(200, { 'content-type': 'application/json' });
	return res.end(path.endsWith('/count_tokens') ? '{"input_tokens":10}' : '{}');
}

const server = http.createServer((req, res) => {
	serve(req, res).catch((problem) => {
		note({ problem: String(problem) });
		if (!res.headersSent) res.writeHead(500);
		res.end();
	});
});
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () =>
	console.log(`listening on http://127.0.0.1:${server.address().port}`));
