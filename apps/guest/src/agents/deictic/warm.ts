import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import type { LlmDialect } from '@svc/contract';
import { Deictic } from './deictic.ts';
import { DEFAULT_OPTIONS } from './options.ts';

/** Generous, since compiling new code is slow on an emulated CPU. */
const DEADLINE_MS = 120_000;

/** The shortest answer in each warmed dialect. Only the most used ones, since each takes long on an emulated CPU. */
const ANSWERS = {
  anthropic: [
    {
      type: 'message_start',
      message: { id: 'm', model: 'm', usage: { input_tokens: 1, output_tokens: 1 } },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ok' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ],
  openai: chatCompletion(),
} as const satisfies Partial<Record<LlmDialect, readonly object[]>>;

/**
 * Runs a task in the most used dialects against a server in this process, so that code loaded and compiled on first
 * use is part of the machine's snapshot. Leaves no files behind. Rejects when a task fails.
 */
export async function warmDeictic(): Promise<void> {
  for (const dialect of ['anthropic', 'openai'] as const) await runOnce(dialect);
}

async function runOnce(dialect: keyof typeof ANSWERS): Promise<void> {
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'text/event-stream');
    // Otherwise the snapshot would contain the pooled connection.
    response.setHeader('connection', 'close');
    response.end(ANSWERS[dialect].map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const agent = new Deictic(
    {
      setup: {
        mode: 'session',
        agent: 'deictic',
        model: 'warm-up',
        dialect,
        gateway: `http://127.0.0.1:${port}`,
        wireVersion: 2,
        env: {},
        restoreFiles: false,
      },
      emit: () => undefined,
      drained: async () => undefined,
      env: () => ({}),
      log: () => undefined,
      home: tmpdir(),
      workingDirectory: tmpdir(),
      signal,
    },
    { ...DEFAULT_OPTIONS, attempts: 1 },
  );
  try {
    const { status, result } = await agent.runTask({ prompt: 'Say ok.' }, signal);
    if (status !== 'completed') throw new Error(`warming up ${dialect} failed: ${result}`);
    agent.conversation();
  } finally {
    await agent.close();
    server.close();
    server.closeAllConnections();
  }
}

function chatCompletion(): object[] {
  const chunk = (delta: object, finish: string | null) => ({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 0,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  return [chunk({ role: 'assistant', content: 'ok' }, null), chunk({}, 'stop')];
}
