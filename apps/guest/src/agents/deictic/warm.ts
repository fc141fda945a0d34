import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import type { LlmDialect } from '@svc/contract';
import { Deictic } from './deictic.ts';
import { DEFAULT_OPTIONS } from './options.ts';

/** An emulated CPU on a busy machine takes long to compile what it has not seen. */
const DEADLINE_MS = 120_000;

/** The shortest answer that each vendor's stream can be. */
const ANSWERS: Readonly<Record<LlmDialect, readonly object[]>> = {
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
  google: [{ candidates: [{ content: { parts: [{ text: 'ok' }] }, finishReason: 'STOP' }] }],
  deepseek: chatCompletion(),
};

/**
 * Runs a task in each dialect against a server within this process, so that what is loaded and compiled at first use
 * is in the snapshot of the machine. Leaves nothing behind. Rejects when a task does not succeed.
 */
export async function warmDeictic(): Promise<void> {
  for (const dialect of Object.keys(ANSWERS) as LlmDialect[]) await runOnce(dialect);
}

async function runOnce(dialect: LlmDialect): Promise<void> {
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'text/event-stream');
    // Or the pool of connections would be kept in the snapshot.
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
