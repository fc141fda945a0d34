import { expect, test } from 'vitest';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { AgentLogs } from './agent-logs.ts';
import { LogCopy } from './log-copy.ts';

test('a log that a guest withholds at each pause is a warning once a minute', async () => {
  const warnings: unknown[] = [];
  const vm = {
    download: () => Promise.reject(new Error('no such file')),
    exited: new Promise<never>(() => undefined),
    paused: false,
    resume: async () => undefined,
  };
  const copy = new LogCopy({
    vm,
    sandbox: { id: 'vm_1' } as Sandbox,
    logs: new AgentLogs('/nowhere'),
    delivery: { deliver: async () => true },
    logger: { warn: (line: unknown) => void warnings.push(line) },
  });
  for (let round = 0; round < 100; round += 1) expect(await copy.keep()).toBe(false);
  // One a minute, however long these take.
  expect(warnings.length).toBeLessThan(10);
  expect(warnings[0]).toMatchObject({ vmId: 'vm_1', omitted: 0 });
});
