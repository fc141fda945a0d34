import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { CliTest } from '../cli-test.ts';
import { isRunning } from '../running.ts';
import { TURN_MS } from '../test-cli.ts';

/** Turns that the user interrupts. */
export function interruptCases(test: CliTest): void {
  test('can be interrupted during an answer, and runs the next task', async ({ cli }) => {
    cli.script({ reply: { text: ['begun', 'x', 'x'], chunk_delay_ms: 60_000 } });
    const outcome = await cli.interrupt('slow one', () =>
      cli.world.texts('text_delta').includes('begun'),
    );
    const result = cli.driver.keepsInterruptedText ? 'begun' : '';
    expect(outcome).toEqual({ status: 'interrupted', result });
    cli.script({ reply: { text: 'still here' } });
    expect(await cli.run('there?')).toEqual({ status: 'completed', result: 'still here' });
  });

  test('can be interrupted while the model does not answer, and runs the next task', async ({
    cli,
  }) => {
    cli.script({ reply: { fault: 'hang' } });
    const outcome = await cli.interrupt('hang', cli.watchRequests());
    expect(outcome).toEqual({ status: 'interrupted', result: '' });
    expect(cli.world.frames).toEqual([]);
    cli.script({ reply: { text: 'still here' } });
    expect(await cli.run('there?')).toEqual({ status: 'completed', result: 'still here' });
  });

  test('can be interrupted during a command, which it ends', async ({ cli }) => {
    const { world } = cli;
    const sleep = `sleep ${randomInt(1e5, 1e9)}`;
    cli.scriptCommand(`touch started; ${sleep}`);
    const started = join(world.home, 'work/started');
    const outcome = await cli.interrupt(
      'sleep',
      () => existsSync(started) && world.frames.some((frame) => frame.type === 'tool_call'),
    );
    expect(outcome).toMatchObject({ status: 'interrupted' });
    expect(world.frames.filter((frame) => frame.type === 'tool_result')).toMatchObject([
      { is_error: true },
    ]);
    await expect.poll(() => isRunning(sleep), { timeout: TURN_MS }).toBe(false);
  });
}
