import { readFile } from 'node:fs/promises';
import { type ForwardedFrame, LIMITS } from '@svc/contract';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RunningRuntime } from '../../test/running-runtime.ts';
import type { WorkerConnection } from '../../test/worker-connection.ts';

const LLM = { model: 'm', dialect: 'openai', gateway: 'http://127.0.0.1:1/openai' } as const;

let runtime: RunningRuntime;
let worker: WorkerConnection;
let sent: number;

beforeEach(async () => {
  runtime = await RunningRuntime.start();
  sent = 0;
});
afterEach(() => runtime[Symbol.asyncDispose]());

function ask(...frames: readonly ForwardedFrame[]): void {
  for (const frame of frames) {
    sent += 1;
    worker.send({ type: 'client', c: sent, frame });
  }
}

describe('a task', () => {
  test('starts, runs, and reports its state before its completion', async () => {
    worker = await runtime.configured();
    ask({ type: 'task', prompt: 'one', id: 't1' });
    await worker.waitForFrame('task_completed');
    expect(worker.all('frame').map(({ frame }) => frame)).toEqual([
      { type: 'task_started', id: 't1' },
      { type: 'text_delta', data: 'did one' },
      { type: 'task_completed', id: 't1', status: 'completed', result: 'one' },
    ]);
    expect(worker.order()).toEqual(['task_started', 'text_delta', 'state', 'task_completed']);
    expect(worker.all('state')).toMatchObject([{ conversation: 'one' }]);
  });

  test('continues an earlier conversation', async () => {
    worker = await runtime.configured({ conversation: 'a|b' });
    ask({ type: 'task', prompt: 'c' });
    expect(await worker.waitFor('state')).toMatchObject({ conversation: 'a|b|c' });
  });

  test('waits while another runs; the ninth in the queue is refused', async () => {
    worker = await runtime.configured();
    ask({ type: 'task', prompt: 'wait' });
    await worker.waitForFrame('task_started');
    for (let index = 1; index <= 9; index += 1) {
      ask({ type: 'task', prompt: `p${index}`, id: `t${index}` });
    }
    expect(await worker.waitForFrame('error')).toMatchObject({ code: 'busy', id: 't9' });
    expect(runtime.agent.running).toEqual(new Set(['wait']));
    ask({ type: 'interrupt' });
    await worker.waitForFrame('task_completed', { id: 't8' });
    const done = worker
      .all('frame')
      .flatMap(({ frame }) =>
        frame.type === 'task_completed' ? [[frame.id, frame.status, frame.result]] : [],
      );
    expect(done[0]).toEqual([undefined, 'interrupted', 'half']);
    expect(done.slice(1)).toEqual(
      Array.from({ length: 8 }, (_, index) => [`t${index + 1}`, 'completed', `p${index + 1}`]),
    );
  });

  test('is interrupted by its id, whether waiting or running', async () => {
    worker = await runtime.configured();
    ask({ type: 'task', prompt: 'wait', id: 'first' });
    ask({ type: 'task', prompt: 'second', id: 'second' });
    ask({ type: 'task', prompt: 'third', id: 'third' });
    await worker.waitForFrame('task_started', { id: 'first' });
    ask({ type: 'interrupt', id: 'unknown' }, { type: 'interrupt', id: 'second' });
    expect(await worker.waitForFrame('task_completed')).toMatchObject({
      id: 'second',
      status: 'interrupted',
    });
    expect(runtime.agent.running).toEqual(new Set(['wait']));
    ask({ type: 'interrupt', id: 'first' });
    expect(await worker.waitForFrame('task_completed', { id: 'first' })).toMatchObject({
      status: 'interrupted',
    });
    await worker.waitForFrame('task_completed', { id: 'third', status: 'completed' });
    expect(worker.all('frame').map(({ frame }) => frame)).not.toContainEqual(
      expect.objectContaining({ type: 'task_started', id: 'second' }),
    );
  });

  test('fails when the agent throws, and the next task continues the conversation', async () => {
    worker = await runtime.configured();
    ask({ type: 'task', prompt: 'one' }, { type: 'task', prompt: 'throw' });
    await worker.waitForFrame('task_completed', { status: 'failed' });
    expect(worker.order().slice(-4)).toEqual(['task_started', 'error', 'state', 'task_completed']);
    ask({ type: 'task', prompt: 'two' });
    await worker.waitFor('state', ({ conversation }) => conversation === 'one|throw|two');
    expect(runtime.agent.closed).toBe(1);
    expect(runtime.agent.contexts).toHaveLength(2);
  });

  test('truncates a result too long for the link', async () => {
    worker = await runtime.configured();
    ask({ type: 'task', prompt: 'x'.repeat(3_000_000) });
    const { result } = (await worker.waitForFrame('task_completed')) as { result: string };
    expect(result.length).toBe(1024 * 1024);
  });
});

describe('an agent that does not start', () => {
  test('is reported as an error, and the next task tries again', async () => {
    runtime.agent.failingStarts = 1;
    worker = await runtime.configured();
    expect(await worker.waitForFrame('error')).toMatchObject({ code: 'agent_failed' });
    // The log is written concurrently with the frames.
    const log = () => readFile(runtime.options.logPath, 'utf8').catch(() => '');
    await expect.poll(log).toContain('no agent today');
    ask({ type: 'task', prompt: 'again' });
    await worker.waitForFrame('task_completed', { status: 'completed' });
  });

  test('fails the waiting task', async () => {
    runtime.agent.failingStarts = 2;
    worker = await runtime.configured();
    ask({ type: 'task', prompt: 'one', id: 't1' });
    await worker.waitForFrame('task_completed', { id: 't1', status: 'failed' });
    expect(worker.order().filter((type) => type === 'error').length).toBeGreaterThan(0);
  });
});

describe('a one-shot agent', () => {
  test.each([
    ['do it', 0],
    ['fail', 1],
    ['throw', 1],
  ])('with the task %j exits with %i, after its state', async (task, exitCode) => {
    worker = await runtime.configured({ mode: 'one_shot', task });
    expect(await worker.waitFor('exited')).toMatchObject({ exitCode });
    expect(worker.order().slice(-3)).toEqual(['state', 'task_completed', 'exited']);
  });

  test('that does not start exits with 1, with or without a task', async () => {
    runtime.agent.failingStarts = 1;
    worker = await runtime.configured({ mode: 'one_shot', task: 'do it' });
    expect(await worker.waitFor('exited')).toMatchObject({ exitCode: 1 });
    expect(worker.order()).toContain('error');
    await using other = await RunningRuntime.start();
    other.agent.failingStarts = 1;
    expect(await (await other.configured({ mode: 'one_shot' })).waitFor('exited')).toMatchObject({
      exitCode: 1,
    });
  });

  test('without a task keeps running', async () => {
    worker = await runtime.configured({ mode: 'one_shot' });
    await expect.poll(() => runtime.agent.contexts.length).toBe(1);
    expect(worker.order()).toEqual([]);
  });

  test('without a task runs those of clients, one after the other, and does not exit', async () => {
    worker = await runtime.configured({ mode: 'one_shot' });
    ask({ type: 'task', prompt: 'one', id: '1' }, { type: 'task', prompt: 'two', id: '2' });
    await worker.waitForFrame('task_completed', { id: '2' });
    const turn = ['task_started', 'state', 'task_completed'];
    expect(worker.order().filter((type) => turn.includes(type))).toEqual([...turn, ...turn]);
    expect(worker.all('exited')).toEqual([]);
  });
});

describe('a command', () => {
  test('runs in the working directory with the agent’s environment', async () => {
    worker = await runtime.configured();
    ask({ type: 'exec', command: 'pwd; echo "$GREETING $HOME"; echo bad >&2; exit 3', id: 'e1' });
    expect(await worker.waitForFrame('exit')).toEqual({ type: 'exit', exit_code: 3, id: 'e1' });
    const { home } = runtime;
    const said = (type: string) =>
      worker
        .all('frame')
        .flatMap(({ frame }) => (frame.type === type && 'data' in frame ? [frame.data] : []));
    expect(said('stdout').join('')).toBe(`${home}/work\nhello ${home}\n`);
    expect(said('stderr').join('')).toBe('bad\n');
  });

  test('runs concurrently with a task', async () => {
    worker = await runtime.configured();
    ask({ type: 'task', prompt: 'wait' }, { type: 'exec', command: 'echo here' });
    await worker.waitForFrame('exit', { exit_code: 0 });
    expect(runtime.agent.running.size).toBe(1);
  });

  test('may be as long as a frame allows, in any script', async () => {
    worker = await runtime.configured();
    const command = `read -r line; echo "[$line]"; : ${'字'.repeat(LIMITS.commandChars - 40)}`;
    ask({ type: 'exec', command });
    await worker.waitForFrame('exit');
    expect(worker.order()).toEqual(['stdout', 'exit']);
    await worker.waitForFrame('stdout', { data: '[]\n' });
  });

  test('has only the new values after a rotation', async () => {
    worker = await runtime.configured();
    worker.send({ type: 'env', env: { OTHER: 'value' } });
    ask({ type: 'exec', command: 'echo "[$GREETING][$OTHER]"' });
    await worker.waitForFrame('stdout', { data: '[][value]\n' });
    worker.send({ type: 'env', llm: LLM });
    ask({ type: 'exec', command: 'echo "still $OTHER"' });
    await worker.waitForFrame('stdout', { data: 'still value\n' });
  });

  test('cannot see the token of the link', async () => {
    worker = await runtime.configured();
    ask({ type: 'exec', command: 'env; cat /proc/$PPID/cmdline /proc/$PPID/environ' });
    await worker.waitForFrame('exit');
    expect(JSON.stringify(worker.received)).not.toContain('the token of the link');
  });

  test('is killed by an interrupt with its id', async () => {
    worker = await runtime.configured();
    ask({ type: 'exec', command: 'echo up; sleep 60', id: 'e1' });
    await worker.waitForFrame('stdout');
    ask({ type: 'interrupt', id: 'e1' });
    expect(await worker.waitForFrame('exit')).toEqual({ type: 'exit', exit_code: 137, id: 'e1' });
  });

  test('is refused when sixteen are running', async () => {
    worker = await runtime.configured();
    for (let index = 0; index < 17; index += 1) {
      ask({ type: 'exec', command: 'sleep 60', id: `e${index}` });
    }
    expect(await worker.waitForFrame('error')).toMatchObject({ code: 'busy', id: 'e16' });
  });

  test('ends with the runtime', async () => {
    const own = await RunningRuntime.start();
    const ownWorker = await own.configured();
    const frame = { type: 'exec', command: 'echo $$; sleep 60' } as const;
    ownWorker.send({ type: 'client', c: 1, frame });
    const { data } = (await ownWorker.waitForFrame('stdout')) as { data: string };
    await own[Symbol.asyncDispose]();
    await expect
      .poll(() => readFile(`/proc/${data.trim()}/cmdline`, 'utf8').catch(() => ''))
      .toBe('');
  });
});

test('refuses desktop tools in a session without a desktop', async () => {
  worker = await runtime.configured();
  ask({ type: 'tool_call', name: 'screenshot', arguments: {}, id: 'c1' });
  expect(await worker.waitForFrame('error')).toMatchObject({
    code: 'tool_not_available',
    id: 'c1',
  });
});

test('continues a task while the worker is disconnected, without losing frames', async () => {
  worker = await runtime.configured();
  ask({ type: 'task', prompt: 'one' });
  await worker.waitFor('received');
  worker.close();
  await expect.poll(() => runtime.agent.running.size).toBe(0);
  worker = await runtime.attached(0);
  await worker.waitForFrame('task_completed');
  expect(worker.order()).toEqual(['task_started', 'text_delta', 'state', 'task_completed']);
});

test('reports the state on request, even during a task', async () => {
  worker = await runtime.configured({ conversation: 'before' });
  worker.send({ type: 'save' });
  expect(await worker.waitFor('state')).toMatchObject({ conversation: 'before' });
  ask({ type: 'task', prompt: 'wait' });
  await expect.poll(() => runtime.agent.running.size).toBe(1);
  worker.send({ type: 'save' });
  await worker.waitFor('state', ({ conversation }) => conversation === 'before|wait');
});
