import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtemp, realpath, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { endRun, processesOf } from './end-run.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(await realpath(tmpdir()), 'svc-end-run-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** A process that prints a line and sleeps, in a session of its own. */
async function sleeper(
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv },
  script = '',
): Promise<ChildProcess> {
  const child = spawn('sh', ['-c', `${script} echo ready; sleep 1000 & wait`], {
    ...options,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return child;
}

test('ends the processes that have the temporary directory of the run or work in it, and removes it', async () => {
  const env = { ...process.env, TMPDIR: directory };
  const ours = [
    await sleeper({ env }),
    await sleeper({ cwd: directory }),
    await sleeper({ env }, "trap '' INT;"),
  ];
  const exits = ours.map((child) => once(child, 'exit'));
  const other = await sleeper({});
  try {
    const left = await endRun(directory, 1_000);
    for (const { pid } of ours) expect(left.map((one) => one.pid)).toContain(pid);
    await Promise.all(exits);
    expect(await processesOf(directory)).toEqual([]);
    await expect(access(directory)).rejects.toThrow('ENOENT');
    expect(other.exitCode ?? other.signalCode).toBeNull();
  } finally {
    if (other.pid !== undefined) process.kill(-other.pid, 'SIGKILL');
  }
});

test.each([
  ['SIGTERM', 143],
  ['SIGHUP', 1],
] as const)(
  'a run that is interrupted by %s leaves no process of its tests, and no file',
  async (signal, code) => {
    const run = spawn(
      process.execPath,
      ['scripts/test.ts', 'packages/store/src/failover.test.ts'],
      {
        env: { ...process.env, TMPDIR: directory },
        stdio: 'ignore',
      },
    );
    const exited = once(run, 'exit');
    const names = async () =>
      (await processesOf(directory)).map(({ command }) => command).join('\n');
    await expect.poll(names, { timeout: 120_000 }).toMatch(/postgres -D/);
    run.kill(signal);
    expect(await exited).toEqual([code, null]);
    expect(await names()).toBe('');
    await rmdir(directory);
  },
);
