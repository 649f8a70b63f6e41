// SPDX-License-Identifier: MIT
// The model APIs on loopback, for the real agents: the "model" does what the last prompt tells it to.
// Anthropic's messages, Google's generateContent and OpenAI's responses differ only in the shapes at the end.
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

/** What a person typed in a block: without the reminders and remarks that the agents add. */
const typed = (block) =>
	block.type !== 'text' ? '' : block.text
		.replace(/<(system-reminder|session_context|environment_context|turn_aborted)>[\s\S]*?<\/\1>/g, '')
		.replace(/\[Request interrupted by user[^\]]*\]/g, '')
		.trim();

/** The last prompt, how many rounds of tool results came after it, the last of them, and the prompts before. */
function readConversation(messages) {
	const prompts = [];
	let rounds = 0;
	let results = [];
	let asked = false; // OpenAI has a message for each result of a round
	for (const message of messages) {
		const blocks = blocksOf(message);
		const here = blocks.filter((block) => block.type === 'tool_result');
		if (here.length > 0) rounds += asked, results = asked ? here : [...results, ...here];
		asked = message.role !== 'user';
		if (asked) continue;
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

/** The pieces of a text, at the speed that the prompt asks for. */
async function* pieces(res, text, prompt) {
	const step = Math.max(1, Math.ceil(text.length / (number(prompt, 'pieces') || 20)));
	for (let from = 0; from < text.length && !res.destroyed; from += step) {
		if (number(prompt, 'slow') > 0) await pause(number(prompt, 'slow'));
		yield text.slice(from, from + step);
		while (awaited(prompt) && !fs.existsSync(awaited(prompt)) && !res.destroyed) await pause(20);
	}
}

// --- the shapes of each API: its conversation as messages of Anthropic's, an error, a stream, an answer in one piece ------

const anthropic = {
	messages: (question) => question.messages,
	error: (status, message) => ({ type: 'error', error: { type: 'invalid_request_error', message } }),
	start(question, stop) {
		const usage = { input_tokens: 10, output_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
		return {
			id: `msg_${++counter}`, type: 'message', role: 'assistant', model: question.model, content: [],
			stop_reason: stop, stop_sequence: null, usage,
		};
	},
	stop: (blocks) => blocks.some((block) => block.type === 'tool_use') ? 'tool_use' : 'end_turn',
	whole: (question, blocks) => ({ ...anthropic.start(question, anthropic.stop(blocks)), content: blocks }),
	async stream(send, question, blocks, piecesOf) {
		const event = (type, rest) => send({ type, ...rest }, type);
		event('message_start', { message: anthropic.start(question, null) });
		for (const [index, block] of blocks.entries()) {
			const empty = block.type === 'text' ? { type: 'text', text: '' } : { ...block, input: {} };
			event('content_block_start', { index, content_block: empty });
			if (block.type === 'text') {
				for await (const text of piecesOf(block.text))
					event('content_block_delta', { index, delta: { type: 'text_delta', text } });
			} else {
				const delta = { type: 'input_json_delta', partial_json: JSON.stringify(block.input) };
				event('content_block_delta', { index, delta });
			}
			event('content_block_stop', { index });
		}
		const delta = { stop_reason: anthropic.stop(blocks), stop_sequence: null };
		event('message_delta', { delta, usage: { output_tokens: 20 } });
		event('message_stop', {});
	},
};

const gemini = {
	messages: (question) => question.contents.map(({ role, parts }) => ({
		role, content: parts.map((part) => part.functionResponse
			? { type: 'tool_result', is_error: 'error' in part.functionResponse.response,
				content: String(part.functionResponse.response.error ?? part.functionResponse.response.output) }
			: { type: 'text', text: part.text ?? '' }),
	})),
	error: (status, message) => ({ error: { code: status, message, status: 'INVALID_ARGUMENT' } }),
	chunk: (parts, finishReason) => ({
		candidates: [{ content: { role: 'model', parts }, index: 0, finishReason }],
		usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 20, totalTokenCount: 30 },
	}),
	part: (block) => block.type === 'text' ? { text: block.text }
		: { functionCall: { id: block.id, name: block.name, args: block.input } },
	whole: (question, blocks) => gemini.chunk(blocks.map(gemini.part), 'STOP'),
	async stream(send, question, blocks, piecesOf) {
		for (const block of blocks) {
			if (block.type !== 'text') send(gemini.chunk([gemini.part(block)]));
			else for await (const text of piecesOf(block.text)) send(gemini.chunk([{ text }]));
		}
		send(gemini.chunk([{ text: '' }], 'STOP'));
	},
};

const openai = {
	messages: (question) => question.input.flatMap((item) =>
		item.type === 'function_call_output' ? [{ role: 'user', content: [{ type: 'tool_result', content: item.output }] }]
		: item.type === 'message' ? [{ role: item.role, content: item.content.map(({ text }) => ({ type: 'text', text })) }]
		: item.type === 'function_call' ? [{ role: 'assistant', content: [] }] : []),
	error: (status, message) => ({ error: { type: 'invalid_request_error', message } }),
	item: (block) => block.type === 'text'
		? { type: 'message', id: `msg_${++counter}`, role: 'assistant', content: [{ type: 'output_text', text: block.text }] }
		: { type: 'function_call', call_id: block.id, name: block.name, arguments: JSON.stringify(block.input) },
	whole(question, blocks) {
		const usage = { input_tokens: 10, output_tokens: 20, total_tokens: 30 };
		return { id: `resp_${++counter}`, status: 'completed', usage, output: blocks.map(openai.item) };
	},
	async stream(send, question, blocks, piecesOf) {
		const event = (type, rest) => send({ type, ...rest }, type);
		const response = openai.whole(question, blocks);
		event('response.created', { response: { ...response, status: 'in_progress', usage: null, output: [] } });
		for (const [output_index, item] of response.output.entries()) {
			event('response.output_item.added', { output_index, item: { ...item, ...(item.content && { content: [] }) } });
			if (item.content) {
				for await (const delta of piecesOf(item.content[0].text))
					event('response.output_text.delta', { output_index, item_id: item.id, content_index: 0, delta });
			}
			event('response.output_item.done', { output_index, item });
		}
		event('response.completed', { response });
	},
};

async function answerWith(api, res, question, streamed) {
	const conversation = readConversation(api.messages(question));
	const status = number(conversation.prompt, 'fail');
	const json = (code, body) => res.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
	note({ model: question.model, ...conversation, results: conversation.results.length });
	if (status > 0) return json(status, api.error(status, `asked to fail with ${status}`));

	const blocks = answer(conversation);
	if (!streamed) return json(200, api.whole(question, blocks));
	const send = (data, event) => res.write(`${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`);
	res.writeHead(200, { 'content-type': 'text/event-stream' });
	await api.stream(send, question, blocks, (text) => pieces(res, text, conversation.prompt));
	return res.end();
}

async function serve(req, res) {
	const parts = [];
	for await (const part of req) parts.push(part);
	const path = req.url.split('?')[0];
	const question = () => JSON.parse(Buffer.concat(parts).toString());
	if (path === '/v1/messages') return answerWith(anthropic, res, question(), question().stream);
	if (path === '/v1/responses') return answerWith(openai, res, question(), question().stream);
	if (path.endsWith('enerateContent')) return answerWith(gemini, res, question(), path.endsWith(':streamGenerateContent'));
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
