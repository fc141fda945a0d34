import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type AgentWorld, createAgentWorld } from '../../../test/vendor-cli/agent-world.ts';
import { isRunning } from '../../../test/vendor-cli/running.ts';
import type { AgentSession } from '../agent.ts';
import { openClaudeCode } from '../claude-code/index.ts';

/** Claude Code's answer to the request with which it is started. */
const READY = `read -r line
echo '{"type":"control_response","response":{"subtype":"success","request_id":"initialize-1"}}'`;
const DONE = `echo '{"type":"result","is_error":false,"result":"done"}'`;
const NEVER = new AbortController().signal;

let world: AgentWorld;
let session: AgentSession | undefined;

beforeEach(async () => {
  world = await createAgentWorld(
    'claude-code',
    'claude-sonnet-4-5',
    'http://127.0.0.1:9/anthropic',
  );
});
afterEach(async () => {
  await session?.close();
  session = undefined;
  await world[Symbol.asyncDispose]();
});

/** A session whose CLI is this shell script. */
async function open(script: string, deadlines = {}): Promise<AgentSession> {
  const binary = join(world.home, 'cli');
  await writeFile(binary, `#!/bin/sh\n${script}\n`);
  await chmod(binary, 0o755);
  session = await openClaudeCode(world.context(), { binary }, deadlines);
  return session;
}

function errors() {
  return world.frames.flatMap((frame) => (frame.type === 'error' ? [frame] : []));
}

describe('a CLI', () => {
  test('is started before the first task', async () => {
    await open(`touch ${world.home}/started\n${READY}\nexec sleep 1000`);
    await expect.poll(() => existsSync(join(world.home, 'started'))).toBe(true);
  });

  test('that is not there fails the task', async () => {
    session = await openClaudeCode(world.context(), { binary: '/nowhere/claude' });
    expect(await session.runTask({ prompt: 'x' }, NEVER)).toMatchObject({ status: 'failed' });
    expect(errors()).toMatchObject([{ code: 'agent_failed' }]);
  });

  test('that hangs at its start fails the task in time, and the next task starts another', async () => {
    const script = `[ -e ${world.home}/again ] || { touch ${world.home}/again; exec sleep 1000; }`;
    const slow = await open(`${script}\n${READY}\nread -r prompt\n${DONE}\nread -r more`, {
      start: 5_000,
    });
    const failed = await slow.runTask({ prompt: 'x', id: 'one' }, NEVER);
    expect(failed.status).toBe('failed');
    expect(errors()).toMatchObject([
      { code: 'agent_failed', id: 'one', message: expect.stringContaining('not ready') },
    ]);
    const next = await slow.runTask({ prompt: 'y' }, NEVER);
    expect(next).toEqual({ status: 'completed', result: 'done' });
  });

  test('that dies at its start fails the task, and what it said is in the log', async () => {
    const dying = await open('echo broken >&2; exit 3');
    expect(await dying.runTask({ prompt: 'x' }, NEVER)).toMatchObject({ status: 'failed' });
    expect(errors()).toMatchObject([{ message: expect.stringContaining('exit code 3') }]);
    expect(world.log()).toContain('broken');
  });

  test('that falls silent fails the task', async () => {
    const silent = await open(`${READY}\nexec sleep 1000`, { silence: 1_000 });
    expect(await silent.runTask({ prompt: 'x' }, NEVER)).toMatchObject({ status: 'failed' });
    expect(errors()).toMatchObject([{ message: expect.stringContaining('said nothing') }]);
  });

  test('that does not heed an interrupt is ended, with all that it started', async () => {
    const [left, own] = [1, 2].map(() => `sleep ${randomInt(1e5, 1e9)}`) as [string, string];
    const deaf = await open(
      `${READY}\nread -r prompt\nsetsid ${left} &\ntouch ${world.home}/busy\nexec ${own}`,
      { interrupt: 500 },
    );
    const abort = new AbortController();
    const running = deaf.runTask({ prompt: 'x' }, abort.signal);
    await expect.poll(() => existsSync(join(world.home, 'busy'))).toBe(true);
    abort.abort();
    expect(await running).toMatchObject({ status: 'interrupted' });
    expect(errors()).toEqual([]);
    expect(await isRunning(own)).toBe(false);
    await deaf.close();
    expect(await isRunning(left)).toBe(false);
  });

  test('is not waited for by a task that is interrupted while it starts', async () => {
    const slow = await open('exec sleep 1000');
    const abort = new AbortController();
    const running = slow.runTask({ prompt: 'x' }, abort.signal);
    abort.abort();
    expect(await running).toEqual({ status: 'interrupted', result: '' });
  });

  test('may say what nobody knows, and too much', async () => {
    const odd = await open(`${READY}
read -r prompt
echo 'not JSON'
echo '[1]'
echo '{"type":"of tomorrow"}'
echo '{"type":"control_request","request_id":"7","request":{"subtype":"can_use_tool"}}'
read -r answer
head -c 20000000 /dev/zero | tr '\\0' x
echo
echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}}'
${DONE}
echo "$answer" >&2
read -r more`);
    const outcome = await odd.runTask({ prompt: 'x' }, NEVER);
    expect(outcome).toEqual({ status: 'completed', result: 'done' });
    expect(world.frames.map((frame) => frame.type)).toEqual(['tool_call', 'tool_result']);
    expect(world.log()).toContain('not JSON');
    expect(world.log()).toContain('too long');
    await expect.poll(() => world.log()).toContain('Nobody is there');
  });

  test('that was closed takes no task', async () => {
    const closed = await open(`${READY}\nexec sleep 1000`);
    await closed.close();
    expect(await closed.runTask({ prompt: 'x' }, NEVER)).toMatchObject({ status: 'failed' });
    expect(errors()).toHaveLength(1);
  });
});
