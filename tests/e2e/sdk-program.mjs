// SPDX-License-Identifier: MIT
// One program on the real TypeScript client, run by test_sdk.py on the real CLI and on plenum-shim in its place.
//
//   node sdk-program.mjs SCENARIO EXECUTABLE
//
// Prints one JSON object: the frames, the callbacks and the answers to calls, in the order in which the program met them.
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';

const [scenario, executable] = process.argv.slice(2);
const seen = { frames: [], callbacks: [], calls: [], stderr: '', end: null };
const options = (more = {}) => ({
	pathToClaudeCodeExecutable: executable,
	stderr: (text) => { seen.stderr += text; },
	...more,
});
const called = (name, value) => { seen.calls.push({ name, value }); return value; };
const back = (name, value) => { seen.callbacks.push({ name, value }); };
const user = (content) => ({ type: 'user', message: { role: 'user', content }, parent_tool_use_id: null });
const bash = (command) => `@tool Bash ${JSON.stringify({ command })}@`;

/** Prompts that are given one by one: the next when `go` is called. */
function prompts() {
	const waiting = [];
	let wake = () => {};
	let closed = false;
	return {
		say: (text) => { waiting.push(user(text)); wake(); },
		end: () => { closed = true; wake(); },
		async *stream() {
			for (;;) {
				while (waiting.length > 0) yield waiting.shift();
				if (closed) return;
				await new Promise((resolve) => { wake = resolve; });
			}
		},
	};
}

async function drain(conversation, each = async () => {}) {
	try {
		for await (const frame of conversation) {
			seen.frames.push(frame);
			await each(frame);
		}
		seen.end = 'ok';
	} catch (problem) {
		seen.end = String(problem.message ?? problem);
	}
}

const asker = (decide) => async (name, input, { toolUseID, signal: _signal, ...more }) => {
	back('canUseTool', { name, input, toolUseID, more: Object.keys(more).sort() });
	return decide(input);
};

function hook(name, answer = {}) {
	return { hooks: [async (input, id) => { back(`hook ${name}`, { input, id }); return answer; }] };
}

const calculator = () => createSdkMcpServer({
	name: 'calc', version: '1.0.0',
	tools: [tool('add', 'adds', { a: z.number(), b: z.number() }, async ({ a, b }) => {
		back('tool add', { a, b });
		return { content: [{ type: 'text', text: String(a + b) }] };
	})],
});

const REFUSAL = { hookSpecificOutput: {
	hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: 'guarded',
} };

/** A few prompts after one another, each after the result of the one before. */
async function talk(texts, more, each = async () => {}) {
	const input = prompts();
	const conversation = query({ prompt: input.stream(), options: options(more) });
	const left = [...texts];
	input.say(left.shift());
	await drain(conversation, async (frame) => {
		await each(frame, conversation);
		if (frame.type !== 'result') return;
		if (left.length > 0) input.say(left.shift());
		else input.end();
	});
}

const scenarios = {
	text: () => drain(query({ prompt: 'hello', options: options() })),
	partial: () => drain(query({ prompt: 'hello', options: options({ includePartialMessages: true }) })),
	several: () => talk(['one', 'two @long 300000@', '@history@']),
	allow: () => talk([bash('touch made')], { canUseTool: asker((updatedInput) => ({ behavior: 'allow', updatedInput })) }),
	deny: () => talk([bash('touch made')], { canUseTool: asker(() => ({ behavior: 'deny', message: 'no' })) }),
	stop: () => talk([bash('touch made'), 'go on'],
		{ canUseTool: asker(() => ({ behavior: 'deny', message: 'no', interrupt: true })) }),
	changed: () => talk([bash('touch asked')],
		{ canUseTool: asker(() => ({ behavior: 'allow', updatedInput: { command: 'touch made' } })) }),
	throws: () => talk([bash('touch made')], { canUseTool: asker(() => { throw new Error('the callback failed'); }) }),
	unasked: () => talk([bash('touch made')]),
	hooks: () => talk([bash('touch made')], {
		canUseTool: asker((updatedInput) => ({ behavior: 'allow', updatedInput })),
		hooks: {
			UserPromptSubmit: [hook('UserPromptSubmit')],
			PreToolUse: [{ matcher: 'Bash', ...hook('PreToolUse') }, { matcher: 'Write', ...hook('never') }],
			PostToolUse: [hook('PostToolUse')],
			Stop: [hook('Stop')],
		},
	}),
	guard: () => talk([bash('touch made')], { hooks: { PreToolUse: [hook('PreToolUse', REFUSAL)] } }),
	mcp: () => talk(['@tool mcp__calc__add {"a":2,"b":3}@'],
		{ mcpServers: { calc: calculator() }, allowedTools: ['mcp__calc__add'] }),
	interrupt: async () => {
		let done = false;
		const texts = ['@until /nowhere/at/all@ @long 2000@', 'go on']; // one piece, whenever the interrupt comes
		await talk(texts, { includePartialMessages: true }, async (frame, conversation) => {
			if (done || !frame.event?.delta?.text) return;
			done = true;
			conversation.interrupt().then((value) => called('interrupt', value));
		});
	},
	settings: () => talk(['before', 'after', bash('touch made')], {}, async (frame, conversation) => {
		if (frame.type !== 'result' || seen.calls.length > 0) return;
		called('setPermissionMode', await conversation.setPermissionMode('acceptEdits'));
		called('setModel', await conversation.setModel('claude-sonnet-4-5'));
		called('mcpServerStatus', await conversation.mcpServerStatus());
		called('supportedCommands', (await conversation.supportedCommands()).map(({ name }) => name));
	}),
	options: () => drain(query({ prompt: 'hello', options: options({
		systemPrompt: 'You are terse.', maxTurns: 3, model: 'claude-sonnet-4-5', permissionMode: 'plan', settingSources: [],
	}) })),
	resume: async () => {
		await drain(query({ prompt: 'remember quince', options: options() }));
		await drain(query({ prompt: '@history@', options: options({ resume: seen.frames[0].session_id }) }));
	},
	failing: () => drain(query({ prompt: '@fail 400@', options: options() })),
	lost: () => drain(query({ prompt: 'hello', options: options({ resume: '00000000-0000-4000-8000-000000000000' }) })),

	// Two programs on one named session (PLENUM_SESSION): "watch" guards until its hook was asked, "drive" prompts.
	watch: async () => {
		const input = prompts();
		const conversation = query({ prompt: input.stream(), options: options({
			hooks: { PreToolUse: [hook('PreToolUse', REFUSAL)] }, mcpServers: { calc: calculator() },
		}) });
		conversation.supportedCommands().then(() => console.log('ready'));
		await drain(conversation, async (frame) => { if (frame.type === 'result') input.end(); });
	},
	drive: () => talk([bash('touch made')], {
		canUseTool: asker((updatedInput) => ({ behavior: 'allow', updatedInput })),
		hooks: { Stop: [hook('Stop')] },
	}),
};

await scenarios[scenario]();
console.log(JSON.stringify(seen));
