import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ProgramError, runProgram } from './run-program.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-run-program-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const shell = (script: string, input?: string, deadlineMs?: number) =>
  runProgram('sh', ['-c', script], input, deadlineMs);

test('a program gets its input and returns its output', async () => {
  expect(await shell('cat; echo of "$0"', 'the input\n')).toBe('the input\nof sh\n');
});

test('a program that fails says why, and one that is missing is named', async () => {
  await expect(shell('echo broken >&2; exit 3')).rejects.toThrow(/^sh -c .*: broken$/);
  await expect(shell('exit 3')).rejects.toThrow(/ended with status 3$/);
  await expect(runProgram('no-such-program', [])).rejects.toThrow(/no-such-program : .*ENOENT/);
});

test('after the deadline, a program ends with whatever it has started', async () => {
  const file = join(directory, 'pid');
  const late = shell(`sleep 300 & echo $! > ${file}; wait`, '', 3_000);
  await expect(late).rejects.toThrow(ProgramError);
  await expect(late).rejects.toThrow(/took longer than 3 s$/);
  const pid = Number(await readFile(file, 'utf8'));
  expect(pid).toBeGreaterThan(1);
  const state = () =>
    readFile(`/proc/${pid}/stat`, 'utf8').then(
      (stat) => stat.split(') ')[1]?.[0],
      () => 'gone',
    );
  // Somebody may have to reap it.
  await expect.poll(state).toMatch(/^(gone|Z)$/);
});
