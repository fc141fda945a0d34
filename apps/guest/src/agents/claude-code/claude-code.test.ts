import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type ModelServer, type Reply, type Rule, startModelServer } from '@svc/model-server';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { AgentSession } from '../agent.ts';
import { type AgentWorld, createAgentWorld } from '../vendor-cli/testing/agent-world.ts';
import { type ForwardProxy, startForwardProxy } from '../vendor-cli/testing/forward-proxy.ts';
import { INSTALL_MS, installClis } from '../vendor-cli/testing/install-clis.ts';
import { isRunning, killAll } from '../vendor-cli/testing/running.ts';
import { openClaudeCode } from './index.ts';

const NEVER = new AbortController().signal;
const TURN_MS = 120_000;
const COMMAND = 'echo it-is-$((40 + 2)); echo "$BUNDLE_VALUE"';

let binary: string;
let server: ModelServer;
let world: AgentWorld;
let proxy: ForwardProxy;
let session: AgentSession;

function open(setup = {}) {
  return openClaudeCode(world.context(setup), { binary, maxRetries: 1 });
}

function script(...rules: Rule[]) {
  server.setScript({ rules });
}

beforeAll(async () => {
  binary = (await installClis()).claude;
  server = await startModelServer({ script: { rules: [] } });
  proxy = await startForwardProxy();
  world = await createAgentWorld('claude-code', 'claude-sonnet-4-5', `${server.url}/anthropic`);
  // A bundle's own key and proxy must not lead it away from the gateway.
  world.env = { ...proxy.env, ANTHROPIC_API_KEY: 'sk-of-a-bundle', BUNDLE_VALUE: 'first' };
  session = await open();
}, INSTALL_MS);
afterAll(async () => {
  await session?.close();
  await world?.[Symbol.asyncDispose]();
  await server?.close();
  await proxy?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  world.frames.length = 0;
});

describe('Claude Code', { timeout: TURN_MS }, () => {
  test('answers two tasks in one process, in a stream, with the placeholder as its key', async () => {
    script({ reply: { text: ['one ', 'two ', 'three'] } });
    const first = await session.runTask({ prompt: 'count' }, NEVER);
    expect(first).toEqual({ status: 'completed', result: 'one two three' });
    expect(world.frames).toEqual([
      { type: 'text_delta', data: 'one ' },
      { type: 'text_delta', data: 'two ' },
      { type: 'text_delta', data: 'three' },
      { type: 'message', role: 'assistant', content: 'one two three' },
    ]);
    script();
    const second = await session.runTask({ prompt: 'and again' }, NEVER);
    expect(second).toEqual({ status: 'completed', result: 'You said: and again' });
    const asked = server.requests.filter((request) => request.dialect === 'anthropic');
    expect(asked.map((request) => request.headers.authorization)).toEqual([
      'Bearer svc-llm-gateway',
      'Bearer svc-llm-gateway',
    ]);
    expect(asked.map((request) => request.headers['x-api-key'])).toEqual([undefined, undefined]);
  });

  test('runs a command of the model with the values of bundles', async () => {
    script(
      { when: { tool: '(it-is-42)' }, reply: { text: 'It printed $1.' } },
      { reply: { tool_calls: [{ name: 'Bash', arguments: { command: COMMAND } }] } },
    );
    const outcome = await session.runTask({ prompt: 'run it' }, NEVER);
    expect(outcome).toEqual({ status: 'completed', result: 'It printed it-is-42.' });
    const call = world.frames.find((frame) => frame.type === 'tool_call');
    expect(call).toMatchObject({ name: 'Bash', arguments: { command: COMMAND } });
    const result = world.frames.find((frame) => frame.type === 'tool_result');
    expect(result).toMatchObject({ id: call?.id, content: 'it-is-42\nfirst', is_error: false });
  });

  test('is interrupted in the middle of an answer, and goes on with the next task', async () => {
    script({
      when: { user: 'slow' },
      reply: { text: ['begun', 'x', 'x'], chunk_delay_ms: 60_000 },
    });
    const abort = new AbortController();
    const running = session.runTask({ prompt: 'slow one' }, abort.signal);
    await expect.poll(() => world.texts('text_delta'), { timeout: TURN_MS }).toContain('begun');
    abort.abort();
    expect(await running).toEqual({ status: 'interrupted', result: 'begun' });
    script({ reply: { text: 'still here' } });
    expect(await session.runTask({ prompt: 'there?' }, NEVER)).toMatchObject({
      result: 'still here',
    });
  });

  test('is interrupted in the middle of a command, which ends', async () => {
    const command = 'touch started; sleep 87654';
    script(
      { when: { tool: '' }, reply: { text: 'not reached' } },
      { reply: { tool_calls: [{ name: 'Bash', arguments: { command } }] } },
    );
    const abort = new AbortController();
    const running = session.runTask({ prompt: 'sleep' }, abort.signal);
    const started = join(world.home, 'work/started');
    await expect.poll(() => existsSync(started), { timeout: TURN_MS }).toBe(true);
    const types = () => world.frames.map((frame) => frame.type);
    await expect.poll(types, { timeout: TURN_MS }).toContain('tool_call');
    abort.abort();
    expect(await running).toMatchObject({ status: 'interrupted' });
    expect(world.frames.filter((frame) => frame.type === 'tool_result')).toMatchObject([
      { is_error: true },
    ]);
    await expect.poll(() => isRunning('sleep 87654'), { timeout: TURN_MS }).toBe(false);
  });

  test.for<[string, Reply]>([
    ['llm_unauthorized', { status: 401 }],
    ['llm_rate_limited', { status: 429, retry_after: '0' }],
    ['llm_overloaded', { status: 529 }],
    ['llm_refused', { status: 400 }],
    ['llm_bad_response', { fault: 'garbage' }],
    ['llm_unavailable', { fault: 'close' }],
    ['llm_unavailable', { fault: 'cut', text: ['some ', 'text'] }],
  ])('tells %s, and goes on with the next task: %o', async ([code, reply]) => {
    script({ reply });
    const failed = await session.runTask({ prompt: 'please', id: 'task-1' }, NEVER);
    expect(failed.status).toBe('failed');
    expect(world.frames.filter((frame) => frame.type === 'error')).toMatchObject([
      { code, id: 'task-1' },
    ]);
    script({ reply: { text: 'well again' } });
    const next = await session.runTask({ prompt: 'and now?' }, NEVER);
    expect(next).toEqual({ status: 'completed', result: 'well again' });
  });

  test('takes rotated values in another process, which remembers', async () => {
    world.env = { ...world.env, BUNDLE_VALUE: 'second' };
    script(
      { when: { tool: '' }, reply: { text: 'done' } },
      { reply: { tool_calls: [{ name: 'Bash', arguments: { command: 'echo "$BUNDLE_VALUE"' } }] } },
    );
    await session.runTask({ prompt: 'which value?' }, NEVER);
    expect(world.texts('tool_result')).toEqual(['second']);
    expect(JSON.stringify(server.requests.at(-1)?.body)).toContain('and again');
  });

  test('is another process after it was killed, which remembers', async () => {
    script();
    await session.runTask({ prompt: 'before the crash' }, NEVER);
    script({ reply: { fault: 'hang' } });
    const asked = server.requests.length;
    const running = session.runTask({ prompt: 'crash' }, NEVER);
    await expect.poll(() => server.requests.length, { timeout: TURN_MS }).toBeGreaterThan(asked);
    await killAll(binary, world.home);
    expect(await running).toMatchObject({ status: 'failed' });
    expect(world.frames.at(-1)).toMatchObject({ type: 'error', code: 'agent_failed' });
    script();
    const next = await session.runTask({ prompt: 'after the crash' }, NEVER);
    expect(next).toMatchObject({ status: 'completed' });
    expect(JSON.stringify(server.requests.at(-1)?.body)).toContain('before the crash');
  });

  test('leaves no process behind', async () => {
    const command = 'setsid sleep 76543 >/dev/null 2>&1 & echo started';
    script(
      { when: { tool: '' }, reply: { text: 'done' } },
      { reply: { tool_calls: [{ name: 'Bash', arguments: { command } }] } },
    );
    await session.runTask({ prompt: 'leave something' }, NEVER);
    expect(await isRunning('sleep 76543')).toBe(true);
    const conversation = session.conversation();
    await session.close();
    expect(await isRunning('sleep 76543')).toBe(false);
    session = await open({ conversation });
  });

  test('goes on with a conversation in another session, and without its transcript in none', async () => {
    script();
    const conversation = session.conversation();
    await session.close();
    session = await open({ conversation });
    expect(await session.runTask({ prompt: 'resumed' }, NEVER)).toMatchObject({
      result: 'You said: resumed',
    });
    expect(JSON.stringify(server.requests.at(-1)?.body)).toContain('and again');
    await session.close();
    const unknown = JSON.stringify({ session: '00000000-0000-4000-8000-000000000000' });
    session = await open({ conversation: unknown });
    expect(await session.runTask({ prompt: 'fresh' }, NEVER)).toMatchObject({
      status: 'completed',
    });
    expect(JSON.stringify(server.requests.at(-1)?.body)).not.toContain('and again');
    expect(world.log()).toContain('starts anew');
  });

  test('has reached out to nothing but the gateway', async () => {
    script(
      { when: { tool: '' }, reply: { text: 'done' } },
      {
        when: { user: 'fetch' },
        reply: {
          tool_calls: [
            { name: 'WebFetch', arguments: { url: 'https://page.invalid/', prompt: 'read' } },
          ],
        },
      },
    );
    await session.runTask({ prompt: 'fetch' }, NEVER);
    expect([...new Set(proxy.wanted)]).toEqual(['page.invalid:443']);
    const models = server.requests.map(({ body }) => (body as { model?: string })?.model);
    expect([...new Set(models)]).toEqual(['claude-sonnet-4-5']);
  });
});
