import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { type AgentWorld, createAgentWorld } from '../../../test/vendor-cli/agent-world.ts';
import { isRunning } from '../../../test/vendor-cli/running.ts';
import type { AgentSession } from '../agent.ts';
import { openClaudeCode } from '../claude-code/index.ts';

/** Claude Code's answer to the request with which it is started. */
const READY = `read -r line
echo '{"type":"control_response","response":{"subtype":"success","request_id":"initialize-1"}}'`;
const DONE = `echo '{"type":"result","is_error":false,"result":"done"}'`;
/** Says nothing until its input is closed. */
const SILENT = 'exec cat >/dev/null';
/** Says nothing, and ignores the end of its input too, so that only a signal ends it. */
const HUNG = 'exec sleep 1000';
const NEVER = new AbortController().signal;

/** A session's CLI, played by a program of the test's choice. */
interface FakeCli extends AsyncDisposable {
  readonly world: AgentWorld;
  /** Opens a session whose CLI is this shell script, made for the home directory. */
  open(script: (home: string) => string, deadlines?: object): Promise<AgentSession>;
  /** Opens a session whose CLI is this program. */
  openProgram(binary: string, deadlines?: object): Promise<AgentSession>;
}

async function fakeCli(): Promise<FakeCli> {
  const endpoint = 'http://127.0.0.1:9/anthropic';
  const world = await createAgentWorld('claude-code', 'claude-sonnet-4-5', endpoint);
  const sessions: AgentSession[] = [];
  const openProgram = async (binary: string, deadlines = {}) => {
    const session = await openClaudeCode(world.context(), { binary }, deadlines);
    sessions.push(session);
    return session;
  };
  return {
    world,
    openProgram,
    open: async (script, deadlines) => {
      const binary = join(world.home, 'cli');
      await writeFile(binary, `#!/bin/sh\n${script(world.home)}\n`);
      await chmod(binary, 0o755);
      return openProgram(binary, deadlines);
    },
    [Symbol.asyncDispose]: async () => {
      for (const session of sessions) await session.close();
      await world[Symbol.asyncDispose]();
    },
  };
}

function errors(world: AgentWorld) {
  return world.frames.flatMap((frame) => (frame.type === 'error' ? [frame] : []));
}

// Most of them wait for a deadline.
describe.concurrent('a CLI', () => {
  test('is started before the first task', async ({ expect }) => {
    await using cli = await fakeCli();
    await cli.open((home) => `touch ${home}/started\n${READY}\n${SILENT}`);
    await expect.poll(() => existsSync(join(cli.world.home, 'started'))).toBe(true);
  });

  test('that does not exist fails the task', async ({ expect }) => {
    await using cli = await fakeCli();
    const session = await cli.openProgram('/nowhere/claude');
    expect(await session.runTask({ prompt: 'x' }, NEVER)).toMatchObject({ status: 'failed' });
    expect(errors(cli.world)).toMatchObject([{ code: 'agent_failed' }]);
  });

  test('that hangs at its start fails the task in time; the next task starts another', async ({
    expect,
  }) => {
    await using cli = await fakeCli();
    const slow = await cli.open(
      (home) =>
        `[ -e ${home}/again ] || { touch ${home}/again; ${HUNG}; }\n${READY}\nread -r prompt\n${DONE}\nread -r more`,
      { start: 5_000 },
    );
    const failed = await slow.runTask({ prompt: 'x', id: 'one' }, NEVER);
    expect(failed.status).toBe('failed');
    expect(errors(cli.world)).toMatchObject([
      { code: 'agent_failed', id: 'one', message: expect.stringContaining('not ready') },
    ]);
    const next = await slow.runTask({ prompt: 'y' }, NEVER);
    expect(next).toEqual({ status: 'completed', result: 'done' });
  });

  test('that dies at its start fails the task, and its output is in the log', async ({
    expect,
  }) => {
    await using cli = await fakeCli();
    const dying = await cli.open(() => 'echo broken >&2; exit 3');
    expect(await dying.runTask({ prompt: 'x' }, NEVER)).toMatchObject({ status: 'failed' });
    expect(errors(cli.world)).toMatchObject([{ message: expect.stringContaining('exit code 3') }]);
    expect(cli.world.log()).toContain('broken');
  });

  test('that falls silent fails the task', async ({ expect }) => {
    await using cli = await fakeCli();
    const silent = await cli.open(() => `${READY}\n${HUNG}`, { silence: 1_000 });
    expect(await silent.runTask({ prompt: 'x' }, NEVER)).toMatchObject({ status: 'failed' });
    expect(errors(cli.world)).toMatchObject([{ message: expect.stringContaining('was silent') }]);
  });

  test('that ignores an interrupt is ended, with all processes that it started', async ({
    expect,
  }) => {
    await using cli = await fakeCli();
    const [left, own] = [1, 2].map(() => `sleep ${randomInt(1e5, 1e9)}`) as [string, string];
    const deaf = await cli.open(
      (home) => `${READY}\nread -r prompt\nsetsid ${left} &\ntouch ${home}/busy\nexec ${own}`,
      { interrupt: 500 },
    );
    const abort = new AbortController();
    const running = deaf.runTask({ prompt: 'x' }, abort.signal);
    await expect.poll(() => existsSync(join(cli.world.home, 'busy'))).toBe(true);
    abort.abort();
    expect(await running).toMatchObject({ status: 'interrupted' });
    expect(errors(cli.world)).toEqual([]);
    expect(await isRunning(own)).toBe(false);
    await deaf.close();
    expect(await isRunning(left)).toBe(false);
  });

  test('is not waited for by a task that is interrupted during the start', async ({ expect }) => {
    await using cli = await fakeCli();
    const slow = await cli.open(() => HUNG);
    const abort = new AbortController();
    const running = slow.runTask({ prompt: 'x' }, abort.signal);
    abort.abort();
    expect(await running).toEqual({ status: 'interrupted', result: '' });
  });

  test('may send unknown messages and overlong lines', async ({ expect }) => {
    await using cli = await fakeCli();
    const odd = await cli.open(
      () => `${READY}
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
read -r more`,
    );
    const outcome = await odd.runTask({ prompt: 'x' }, NEVER);
    expect(outcome).toEqual({ status: 'completed', result: 'done' });
    expect(cli.world.frames.map((frame) => frame.type)).toEqual(['tool_call', 'tool_result']);
    expect(cli.world.log()).toContain('not JSON');
    expect(cli.world.log()).toContain('too long');
    await expect.poll(() => cli.world.log()).toContain('No user is present');
  });

  test('that was closed accepts no task', async ({ expect }) => {
    await using cli = await fakeCli();
    const closed = await cli.open(() => `${READY}\n${HUNG}`);
    await closed.close();
    expect(await closed.runTask({ prompt: 'x' }, NEVER)).toMatchObject({ status: 'failed' });
    expect(errors(cli.world)).toHaveLength(1);
  });
});
