import { join } from 'node:path';
import { expect } from 'vitest';
import type { CliTest } from '../cli-test.ts';

const COMMAND = 'echo it-is-$((40 + 2)); echo "$BUNDLE_TOKEN"';

/** Successful turns. */
export function turnCases(test: CliTest): void {
  test('streams the answers to two tasks from one process, with the placeholder key', async ({
    cli,
  }) => {
    const { server, world } = cli;
    const before = server.requests.length;
    cli.script({ reply: { text: ['one ', 'two ', 'three'] } });
    const first = await cli.run('count');
    expect(first).toEqual({ status: 'completed', result: 'one two three' });
    expect(world.frames).toEqual([
      { type: 'text_delta', data: 'one ' },
      { type: 'text_delta', data: 'two ' },
      { type: 'text_delta', data: 'three' },
      { type: 'message', role: 'assistant', content: 'one two three' },
    ]);
    const processes = await cli.processes();
    expect(processes).toHaveLength(1);
    cli.script();
    const second = await cli.run('and again');
    expect(second).toEqual({ status: 'completed', result: 'You said: and again' });
    expect(await cli.processes()).toEqual(processes);
    const keys = server.requests
      .slice(before)
      .map(({ headers }) => [headers.authorization, headers['x-api-key']]);
    const placeholder = ['Bearer svc-llm-gateway', undefined];
    expect(keys).toEqual([placeholder, placeholder]);
  });

  test('runs a command of the model with the bundle’s values', async ({ cli }) => {
    const { driver, world } = cli;
    cli.scriptCommand(COMMAND, {
      when: { tool: '(it-is-42)' },
      reply: { text: 'It printed $1.' },
    });
    const outcome = await cli.run('run it');
    expect(outcome).toEqual({ status: 'completed', result: 'It printed it-is-42.' });
    const call = world.frames.find((frame) => frame.type === 'tool_call');
    expect(call).toMatchObject(driver.shellFrame(COMMAND, join(world.home, 'work')));
    const result = world.frames.find((frame) => frame.type === 'tool_result');
    const content = driver.shellResult('it-is-42\nfirst\n');
    expect(result).toMatchObject({ id: call?.id, content, is_error: false });
  });
}
