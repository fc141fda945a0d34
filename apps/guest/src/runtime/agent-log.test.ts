import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AgentLog } from './agent-log.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-agent-log-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test('appends text in order', async () => {
  const path = join(directory, 'deep/log');
  const log = new AgentLog(path);
  for (const text of ['a\n', 'b\n', 'c\n']) log.append(text);
  await log.flushed();
  log.append('d\n');
  await log.flushed();
  expect(await readFile(path, 'utf8')).toBe('a\nb\nc\nd\n');
});

test('drops its older half when full, at a line boundary', async () => {
  const log = new AgentLog(join(directory, 'log'), 1000);
  for (let index = 0; index < 30; index += 1) {
    log.append(`${index} ${'x'.repeat(50)}\n`);
    await log.flushed();
  }
  const lines = (await readFile(join(directory, 'log'), 'utf8')).trim().split('\n');
  expect(lines.join('\n').length).toBeLessThan(1000);
  expect(lines.at(-1)).toMatch(/^29 /);
  expect(lines.every((line) => /^\d+ x{50}$/.test(line))).toBe(true);
  expect(await readdir(directory)).toEqual(['log']);
});

test('bounds pending text, and notes that some was left out', async () => {
  const log = new AgentLog(join(directory, 'log'));
  for (let index = 0; index < 20; index += 1) log.append('x'.repeat(1024 * 1024));
  await log.flushed();
  const text = await readFile(join(directory, 'log'), 'utf8');
  expect(text.length).toBeLessThan(6 * 1024 * 1024);
  expect(text).toContain('left out');
});

test('ignores a file that cannot be written', async () => {
  const log = new AgentLog('/dev/null/log');
  log.append('lost\n');
  await log.flushed();
});
