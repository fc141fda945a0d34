import { randomInt } from 'node:crypto';
import { expect, vi } from 'vitest';
import type { CliTest } from '../cli-test.ts';
import { isRunning, killAll } from '../running.ts';
import { TURN_MS } from '../test-cli.ts';

/** The processes of a session: when they are replaced, and that none is left behind. */
export function processCases(test: CliTest): void {
  test('restarts after being killed and remembers the conversation', async ({ cli }) => {
    cli.script();
    await cli.run('before the crash');
    cli.script({ reply: { fault: 'hang' } });
    const isAsked = cli.watchRequests();
    const running = cli.run('crash');
    await vi.waitUntil(isAsked, { timeout: TURN_MS });
    await killAll(cli.binary, cli.world.home);
    expect(await running).toMatchObject({ status: 'failed' });
    expect(cli.world.frames.at(-1)).toMatchObject({ type: 'error', code: 'agent_failed' });
    cli.script();
    expect(await cli.run('after the crash')).toMatchObject({ status: 'completed' });
    expect(cli.lastRequest()).toContain('before the crash');
    await cli.reopen({ conversation: cli.session.conversation() });
    await cli.run('resumed');
    expect(cli.lastRequest()).toContain('before the crash');
  });

  test('leaves no process behind', async ({ cli }) => {
    const sleep = `sleep ${randomInt(1e5, 1e9)}`;
    // Once it leads a session of its own, the end of the command's process group cannot reach it.
    const hasSession = '[ "$(cut -d" " -f6 /proc/$!/stat)" = $! ]';
    cli.scriptCommand(
      `setsid ${sleep} >/dev/null 2>&1 & until ${hasSession}; do sleep 0.05; done; echo started`,
    );
    await cli.run('leave something');
    await expect.poll(() => isRunning(sleep), { timeout: TURN_MS }).toBe(true);
    const conversation = cli.session.conversation();
    await cli.session.close();
    expect(await isRunning(sleep)).toBe(false);
    await cli.reopen({ conversation });
  });
}

/** A rotation of the bundle's values. The next task in the same session restarts the CLI again. */
export function rotationCases(test: CliTest): void {
  test('restarts for rotated values and remembers the conversation', async ({ cli }) => {
    const { driver, world } = cli;
    cli.script();
    await cli.run('before the rotation');
    const processes = await cli.processes();
    world.env = { ...world.env, BUNDLE_TOKEN: 'second' };
    cli.scriptCommand('echo "$BUNDLE_TOKEN"');
    await cli.run('which value?');
    expect(world.texts('tool_result')).toEqual([driver.shellResult('second\n')]);
    expect(cli.lastRequest()).toContain('before the rotation');
    expect(await cli.processes()).toHaveLength(1);
    expect(await cli.processes()).not.toEqual(processes);
  });
}
