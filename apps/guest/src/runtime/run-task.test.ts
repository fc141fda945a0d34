import { expect, test, vi } from 'vitest';
import { SETUP } from '../../test/running-runtime.ts';
import { ScriptedAgent } from '../../test/scripted-agent.ts';
import { AgentSupervisor } from './agent-supervisor.ts';
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

function supervise(agent: ScriptedAgent, options: { startMs?: number } = {}) {
  const onFailed = vi.fn();
  const supervisor = new AgentSupervisor({
    load: async () => agent.start,
    context: (conversation) => ({
      ...context,
      setup: conversation === undefined ? SETUP : { ...SETUP, conversation },
    }),
    llm: () => SETUP,
    conversation: undefined,
    onFailed,
    ...options,
  });
  return { supervisor, onFailed };
}

test('ends an agent that ignores an interrupt, and starts another for the next task', async () => {
  const agent = new ScriptedAgent();
  const { supervisor, onFailed } = supervise(agent);
  const abort = new AbortController();
  const running = runTask(supervisor, { prompt: 'hang' }, abort.signal, onFailed, 50);
  await expect.poll(() => agent.running.size).toBe(1);
  abort.abort();
  expect(await running).toEqual({ status: 'interrupted', result: '' });
  expect(onFailed).toHaveBeenCalledOnce();
  expect(agent.closed).toBe(1);
  const signal = new AbortController().signal;
  expect(await runTask(supervisor, { prompt: 'go' }, signal, onFailed)).toMatchObject({
    status: 'completed',
  });
  expect(supervisor.conversation()).toBe('hang|go');
});

test('fails the task when the agent does not become ready in time, and ends an agent that becomes ready later', async () => {
  const agent = new ScriptedAgent();
  const gate = Promise.withResolvers<void>();
  const slow = new ScriptedAgent();
  slow.start = async (given) => {
    await gate.promise;
    return agent.start(given);
  };
  const { supervisor, onFailed } = supervise(slow, { startMs: 50 });
  const signal = new AbortController().signal;
  expect(await runTask(supervisor, { prompt: 'go' }, signal, onFailed)).toEqual({
    status: 'failed',
    result: '',
  });
  gate.resolve();
  await expect.poll(() => agent.closed).toBe(1);
});
