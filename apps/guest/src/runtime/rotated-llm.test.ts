import type { LlmDialect, WorkerMessage } from '@svc/contract';
import { startModelServer } from '@svc/model-server';
import { describe, expect, test } from 'vitest';
import { RunningRuntime, SETUP } from '../../test/running-runtime.ts';
import { loadAgent } from '../agents/registry.ts';

const LLM = { model: 'model-2', dialect: 'openai', gateway: 'http://127.0.0.1:1/openai' } as const;
const rotation = (llm: object = LLM, env = SETUP.env) =>
  ({ type: 'env', env, llm }) as WorkerMessage;
const task = (c: number, prompt: string): WorkerMessage => ({
  type: 'client',
  c,
  frame: { type: 'task', prompt, id: prompt },
});

describe('a rotated model', () => {
  test('is used from the next task on, which continues the conversation', async () => {
    await using runtime = await RunningRuntime.start();
    const worker = await runtime.configured();
    worker.send(task(1, 'one'));
    await worker.waitForFrame('task_completed', { id: 'one' });
    worker.send(rotation(), task(2, 'two'));
    await worker.waitFor('state', ({ conversation }) => conversation === 'one|two');
    expect(runtime.agent.contexts.map(({ setup }) => setup.model)).toEqual(['model-1', 'model-2']);
    expect(runtime.agent.contexts.at(-1)?.setup).toMatchObject(LLM);
    expect(runtime.agent.closed).toBe(1);
  });

  test('does not interrupt the running task', async () => {
    await using runtime = await RunningRuntime.start();
    const worker = await runtime.configured();
    worker.send(task(1, 'wait'));
    await worker.waitForFrame('task_started');
    worker.send(rotation(), task(2, 'two'), {
      type: 'client',
      c: 3,
      frame: { type: 'exec', command: 'echo done' },
    });
    await worker.waitForFrame('exit');
    expect(runtime.agent.running).toEqual(new Set(['wait']));
    expect(runtime.agent.closed).toBe(0);
    worker.send({ type: 'client', c: 4, frame: { type: 'interrupt', id: 'wait' } });
    await worker.waitFor('state', ({ conversation }) => conversation === 'wait|two');
    expect(runtime.agent.contexts.map(({ setup }) => setup.model)).toEqual(['model-1', 'model-2']);
  });

  test('reaches an agent that is still starting', async () => {
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    await using runtime: RunningRuntime = await RunningRuntime.start({
      loadAgent: async () => async (context) => {
        asked.resolve();
        await gate.promise;
        return runtime.agent.start(context);
      },
    });
    const worker = await runtime.configured();
    await asked.promise;
    worker.send(rotation(), task(1, 'one'));
    await worker.waitForFrame('task_started');
    gate.resolve();
    await worker.waitForFrame('task_completed', { id: 'one' });
    expect(runtime.agent.contexts.map(({ setup }) => setup.model)).toEqual(['model-1', 'model-2']);
  });

  test('that is the present one, or a rotation of other values, leaves the agent running', async () => {
    await using runtime = await RunningRuntime.start();
    const worker = await runtime.configured();
    const { model, dialect, gateway } = SETUP;
    worker.send(task(1, 'one'), rotation({ model, dialect, gateway }, { GREETING: 'good day' }));
    worker.send(task(2, 'two'), { type: 'env', env: {} }, task(3, 'three'));
    await worker.waitFor('state', ({ conversation }) => conversation === 'one|two|three');
    expect(runtime.agent.contexts).toHaveLength(1);
  });
});

describe('deictic', () => {
  const DIALECTS: Record<LlmDialect, string> = {
    anthropic: '/messages',
    openai: '/openai/chat/completions',
    google: '/google/models/a-model:streamGenerateContent?alt=sse',
    deepseek: '/deepseek/chat/completions',
  };
  const CHANGES: readonly [LlmDialect, LlmDialect][] = [
    ['google', 'openai'],
    ['openai', 'google'],
    ['deepseek', 'openai'],
    ['openai', 'deepseek'],
  ];

  test.each(CHANGES)('changes its dialect from %s to %s between two tasks', async (from, to) => {
    const command = { name: 'shell', arguments: { command: 'echo tea' } };
    await using server = await startModelServer({
      script: {
        rules: [
          { when: { tool: 'tea' }, reply: { text: 'It is tea.' } },
          { when: { user: 'first' }, reply: { tool_calls: [command] } },
        ],
      },
    });
    await using runtime = await RunningRuntime.start({ loadAgent });
    const llm = (dialect: LlmDialect) => ({
      model: 'a-model',
      dialect,
      gateway: `${server.url}/${dialect}`,
    });
    const worker = await runtime.configured(llm(from));
    worker.send(task(1, 'first'));
    await worker.waitForFrame('task_completed', { id: 'first', status: 'completed' });
    const before = server.requests.length;
    worker.send(rotation(llm(to)), task(2, 'second'));
    await worker.waitForFrame('task_completed', { id: 'second', status: 'completed' });
    expect(server.requests.slice(0, before).map(({ path }) => path)).toEqual(
      Array.from({ length: before }, () => DIALECTS[from]),
    );
    expect(server.requests.slice(before).map(({ path }) => path)).toEqual([DIALECTS[to]]);
    expect(JSON.stringify(server.requests.at(-1)?.body)).toContain('It is tea.');
  });
});
