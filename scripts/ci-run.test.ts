import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, realpath, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { endRun, processesOf } from './end-run.ts';

/** Tests that end what they have started. */
const TESTS = `
[ "$1" = test ] || exit 0
trap 'echo ended; kill $! 2>/dev/null; exit 1' INT TERM HUP
sleep 1000 &
wait`;

let checkout: string;

beforeEach(async () => {
  checkout = await mkdtemp(join(await realpath(tmpdir()), 'svc-ci-run-'));
  for (const folder of ['.ci', 'scripts', 'bin']) await mkdir(join(checkout, folder));
  await copyFile('.ci/run', join(checkout, '.ci/run'));
  await writeFile(join(checkout, 'scripts/bootstrap.sh'), 'echo installed');
});
afterEach(() => endRun(checkout, 0));

/** Starts `.ci/run`, without a terminal, with `script` in place of npm. */
async function start(script: string): Promise<ChildProcessByStdio<null, Readable, null>> {
  await writeFile(join(checkout, 'bin/npm'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return spawn(join(checkout, '.ci/run'), {
    env: { ...process.env, TMPDIR: checkout, PATH: `${checkout}/bin:${process.env.PATH}` },
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

test.each([
  ['true', 0],
  ['[ "$3" != lint ]', 1],
  ['[ "$1" != test ]', 1],
])(
  'after %s in every check, exits with %i, and its last line is the totals',
  async (outcome, code) => {
    const totals = '3 passed, 0 failed';
    const run = await start(`[ "$1" != test ] || echo '${totals}'; echo more; ${outcome}`);
    const [output] = await Promise.all([text(run.stdout), once(run, 'exit')]);
    expect(run.exitCode).toBe(code);
    expect(output).toMatch(/^installed\n/);
    expect(output.split('\n').slice(-2)).toEqual([totals, '']);
  },
);

test('the check of a script that is killed ends, too', async () => {
  const run = await start(TESTS);
  const output = text(run.stdout);
  const names = async () => (await processesOf(checkout)).map(({ command }) => command);
  await expect.poll(names).toContain('sleep 1000');
  process.kill(-(run.pid ?? 0), 'SIGKILL');
  await expect.poll(names).toEqual([]);
  expect(await output).toMatch(/ended\n$/);
});

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s to the script alone ends its check with all processes',
  async (signal) => {
    const run = await start(TESTS);
    const output = text(run.stdout);
    const names = async () => (await processesOf(checkout)).map(({ command }) => command);
    await expect.poll(names).toContain('sleep 1000');
    const exited = once(run, 'exit');
    run.kill(signal);
    expect(await exited).toEqual([1, null]);
    expect(await names()).toEqual([]);
    expect(await output).toMatch(/ended\n\nfailed: tests\n0 passed, 1 failed\n$/);
  },
);
