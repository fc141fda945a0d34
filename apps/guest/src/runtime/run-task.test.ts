import { expect, test, vi } from 'vitest';
import { SETUP } from '../testing/running-runtime.ts';
import { ScriptedAgent } from '../testing/scripted-agent.ts';
import { AgentHolder } from './agent-holder.ts';
import { runTask } from './run-task.ts';

const context = {
  setup: SETUP,
  home: '/nowhere',
  workingDirectory: '/nowhere',
  signal: new AbortController().signal,
  emit: () => undefined,
  drained: async () => undefined,
  env: () => ({}),
  log: () => undefined,
};

function hold(agent: ScriptedAgent, options: { startMs?: number } = {}) {
  const onFailed = vi.fn();
  const holder = new AgentHolder({
    load: async () => agent.start,
    context: (conversation) => ({
      ...context,
      setup: conversation === undefined ? SETUP : { ...SETUP, conversation },
    }),
    conversation: undefined,
    onFailed,
    ...options,
  });
  return { holder, onFailed };
}

test('an agent that does not heed an interrupt is ended, and the next task has a new one', async () => {
  const agent = new ScriptedAgent();
  const { holder, onFailed } = hold(agent);
  const abort = new AbortController();
  const running = runTask(holder, { prompt: 'hang' }, abort.signal, onFailed, 50);
  await expect.poll(() => agent.running.size).toBe(1);
  abort.abort();
  expect(await running).toEqual({ status: 'interrupted', result: '' });
  expect(onFailed).toHaveBeenCalledOnce();
  expect(agent.closed).toBe(1);
  const signal = new AbortController().signal;
  expect(await runTask(holder, { prompt: 'go' }, signal, onFailed)).toMatchObject({
    status: 'completed',
  });
  expect(holder.conversation()).toBe('hang|go');
});

test('an agent that never becomes ready fails its task, and is ended if it does after all', async () => {
  const agent = new ScriptedAgent();
  const gate = Promise.withResolvers<void>();
  const slow = new ScriptedAgent();
  slow.start = async (given) => {
    await gate.promise;
    return agent.start(given);
  };
  const { holder, onFailed } = hold(slow, { startMs: 50 });
  const signal = new AbortController().signal;
  expect(await runTask(holder, { prompt: 'go' }, signal, onFailed)).toEqual({
    status: 'failed',
    result: '',
  });
  gate.resolve();
  await expect.poll(() => agent.closed).toBe(1);
});
