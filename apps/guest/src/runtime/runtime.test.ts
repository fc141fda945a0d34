import { readFile } from 'node:fs/promises';
import type { ClientFrame } from '@svc/contract';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RunningRuntime } from '../testing/running-runtime.ts';
import type { WorkerLine } from '../testing/worker-line.ts';

let runtime: RunningRuntime;
let line: WorkerLine;
let sent: number;

beforeEach(async () => {
  runtime = await RunningRuntime.start();
  sent = 0;
});
afterEach(() => runtime[Symbol.asyncDispose]());

function ask(...frames: readonly Exclude<ClientFrame, { type: 'ping' }>[]): void {
  for (const frame of frames) {
    sent += 1;
    line.say({ type: 'client', c: sent, frame });
  }
}

describe('a task', () => {
  test('starts, is done, and has its state told before its end', async () => {
    line = await runtime.configured();
    ask({ type: 'task', prompt: 'one', id: 't1' });
    await line.frame('task_completed');
    expect(line.all('frame').map(({ frame }) => frame)).toEqual([
      { type: 'task_started', id: 't1' },
      { type: 'text_delta', data: 'did one' },
      { type: 'task_completed', id: 't1', status: 'completed', result: 'one' },
    ]);
    expect(line.order()).toEqual(['task_started', 'text_delta', 'state', 'task_completed']);
    expect(line.all('state')).toMatchObject([{ conversation: 'one' }]);
  });

  test('goes on from the conversation of before', async () => {
    line = await runtime.configured({ conversation: 'a|b' });
    ask({ type: 'task', prompt: 'c' });
    expect(await line.hear('state')).toMatchObject({ conversation: 'a|b|c' });
  });

  test('waits while another runs; of too many the last is refused', async () => {
    line = await runtime.configured();
    ask({ type: 'task', prompt: 'wait' });
    await line.frame('task_started');
    for (let index = 1; index <= 9; index += 1) {
      ask({ type: 'task', prompt: `p${index}`, id: `t${index}` });
    }
    expect(await line.frame('error')).toMatchObject({ code: 'busy', id: 't9' });
    expect(runtime.agent.running).toEqual(new Set(['wait']));
    ask({ type: 'interrupt' });
    await line.frame('task_completed', { id: 't8' });
    const done = line
      .all('frame')
      .flatMap(({ frame }) =>
        frame.type === 'task_completed' ? [[frame.id, frame.status, frame.result]] : [],
      );
    expect(done[0]).toEqual([undefined, 'interrupted', 'half']);
    expect(done.slice(1)).toEqual(
      Array.from({ length: 8 }, (_, index) => [`t${index + 1}`, 'completed', `p${index + 1}`]),
    );
  });

  test('is interrupted by its id, waiting or running, and no other is', async () => {
    line = await runtime.configured();
    ask({ type: 'task', prompt: 'wait', id: 'first' });
    ask({ type: 'task', prompt: 'second', id: 'second' });
    ask({ type: 'task', prompt: 'third', id: 'third' });
    await line.frame('task_started', { id: 'first' });
    ask({ type: 'interrupt', id: 'unknown' }, { type: 'interrupt', id: 'second' });
    expect(await line.frame('task_completed')).toMatchObject({
      id: 'second',
      status: 'interrupted',
    });
    expect(runtime.agent.running).toEqual(new Set(['wait']));
    ask({ type: 'interrupt', id: 'first' });
    expect(await line.frame('task_completed', { id: 'first' })).toMatchObject({
      status: 'interrupted',
    });
    await line.frame('task_completed', { id: 'third', status: 'completed' });
    expect(line.all('frame').map(({ frame }) => frame)).not.toContainEqual(
      expect.objectContaining({ type: 'task_started', id: 'second' }),
    );
  });

  test('that the agent breaks off fails, and the next one finds the conversation again', async () => {
    line = await runtime.configured();
    ask({ type: 'task', prompt: 'one' }, { type: 'task', prompt: 'throw' });
    await line.frame('task_completed', { status: 'failed' });
    expect(line.order().slice(-4)).toEqual(['task_started', 'error', 'state', 'task_completed']);
    ask({ type: 'task', prompt: 'two' });
    await line.hear('state', ({ conversation }) => conversation === 'one|throw|two');
    expect(runtime.agent.closed).toBe(1);
    expect(runtime.agent.contexts).toHaveLength(2);
  });

  test('with an end longer than the line carries still ends', async () => {
    line = await runtime.configured();
    ask({ type: 'task', prompt: 'x'.repeat(3_000_000) });
    const { result } = (await line.frame('task_completed')) as { result: string };
    expect(result.length).toBe(1024 * 1024);
  });
});

describe('an agent that does not start', () => {
  test('is an error, and the next task tries again', async () => {
    runtime.agent.failingStarts = 1;
    line = await runtime.configured();
    expect(await line.frame('error')).toMatchObject({ code: 'agent_failed' });
    // The log is written beside the frames.
    const log = () => readFile(runtime.options.logPath, 'utf8').catch(() => '');
    await expect.poll(log).toContain('no agent today');
    ask({ type: 'task', prompt: 'again' });
    await line.frame('task_completed', { status: 'completed' });
  });

  test('fails the task that waits for it', async () => {
    runtime.agent.failingStarts = 2;
    line = await runtime.configured();
    ask({ type: 'task', prompt: 'one', id: 't1' });
    await line.frame('task_completed', { id: 't1', status: 'failed' });
    expect(line.order().filter((type) => type === 'error').length).toBeGreaterThan(0);
  });
});

describe('a one-shot agent', () => {
  test.each([
    ['do it', 0],
    ['fail', 1],
    ['throw', 1],
  ])('that is told to %s exits with %i, after its state', async (task, exitCode) => {
    line = await runtime.configured({ mode: 'one_shot', task });
    expect(await line.hear('exited')).toMatchObject({ exitCode });
    expect(line.order().slice(-3)).toEqual(['state', 'task_completed', 'exited']);
  });

  test('that does not start exits with 1, with a task and without', async () => {
    runtime.agent.failingStarts = 1;
    line = await runtime.configured({ mode: 'one_shot', task: 'do it' });
    expect(await line.hear('exited')).toMatchObject({ exitCode: 1 });
    expect(line.order()).toContain('error');
    await using other = await RunningRuntime.start();
    other.agent.failingStarts = 1;
    expect(await (await other.configured({ mode: 'one_shot' })).hear('exited')).toMatchObject({
      exitCode: 1,
    });
  });

  test('without a task waits', async () => {
    line = await runtime.configured({ mode: 'one_shot' });
    await expect.poll(() => runtime.agent.contexts.length).toBe(1);
    expect(line.order()).toEqual([]);
  });
});

describe('a command', () => {
  test('runs in the working directory, with the agent’s environment', async () => {
    line = await runtime.configured();
    ask({ type: 'exec', command: 'pwd; echo "$GREETING $HOME"; echo bad >&2; exit 3', id: 'e1' });
    expect(await line.frame('exit')).toEqual({ type: 'exit', exit_code: 3, id: 'e1' });
    const { home } = runtime;
    const said = (type: string) =>
      line
        .all('frame')
        .flatMap(({ frame }) => (frame.type === type && 'data' in frame ? [frame.data] : []));
    expect(said('stdout').join('')).toBe(`${home}/work\nhello ${home}\n`);
    expect(said('stderr').join('')).toBe('bad\n');
  });

  test('runs beside a task, and does not wait for it', async () => {
    line = await runtime.configured();
    ask({ type: 'task', prompt: 'wait' }, { type: 'exec', command: 'echo here' });
    await line.frame('exit', { exit_code: 0 });
    expect(runtime.agent.running.size).toBe(1);
  });

  test('has the new values after a rotation, and none of the old', async () => {
    line = await runtime.configured();
    line.say({ type: 'env', env: { OTHER: 'value' } });
    ask({ type: 'exec', command: 'echo "[$GREETING][$OTHER]"' });
    await line.frame('stdout', { data: '[][value]\n' });
  });

  test('sees nothing of the line’s token', async () => {
    line = await runtime.configured();
    ask({ type: 'exec', command: 'env; cat /proc/$PPID/cmdline /proc/$PPID/environ' });
    await line.frame('exit');
    expect(JSON.stringify(line.received)).not.toContain('the token of the line');
  });

  test('is ended by an interrupt with its id', async () => {
    line = await runtime.configured();
    ask({ type: 'exec', command: 'echo up; sleep 60', id: 'e1' });
    await line.frame('stdout');
    ask({ type: 'interrupt', id: 'e1' });
    expect(await line.frame('exit')).toEqual({ type: 'exit', exit_code: 137, id: 'e1' });
  });

  test('of too many at once the last is refused', async () => {
    line = await runtime.configured();
    for (let index = 0; index < 17; index += 1) {
      ask({ type: 'exec', command: 'sleep 60', id: `e${index}` });
    }
    expect(await line.frame('error')).toMatchObject({ code: 'busy', id: 'e16' });
  });

  test('ends with the runtime', async () => {
    const own = await RunningRuntime.start();
    const worker = await own.configured();
    const frame = { type: 'exec', command: 'echo $$; sleep 60' } as const;
    worker.say({ type: 'client', c: 1, frame });
    const { data } = (await worker.frame('stdout')) as { data: string };
    await own[Symbol.asyncDispose]();
    await expect
      .poll(() => readFile(`/proc/${data.trim()}/cmdline`, 'utf8').catch(() => ''))
      .toBe('');
  });
});

test('the desktop of a session that has none cannot be controlled', async () => {
  line = await runtime.configured();
  ask({ type: 'tool_call', name: 'screenshot', arguments: {}, id: 'c1' });
  expect(await line.frame('error')).toMatchObject({ code: 'tool_not_available', id: 'c1' });
});

test('a task goes on while the worker is away, and nothing of it is lost', async () => {
  line = await runtime.configured();
  ask({ type: 'task', prompt: 'one' });
  await line.hear('received');
  line.close();
  await expect.poll(() => runtime.agent.running.size).toBe(0);
  line = await runtime.attached(0);
  await line.frame('task_completed');
  expect(line.order()).toEqual(['task_started', 'text_delta', 'state', 'task_completed']);
});

test('the state is told when it is asked for, in the middle of a task too', async () => {
  line = await runtime.configured({ conversation: 'before' });
  line.say({ type: 'save' });
  expect(await line.hear('state')).toMatchObject({ conversation: 'before' });
  ask({ type: 'task', prompt: 'wait' });
  await expect.poll(() => runtime.agent.running.size).toBe(1);
  line.say({ type: 'save' });
  await line.hear('state', ({ conversation }) => conversation === 'before|wait');
});
