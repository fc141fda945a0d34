import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openServiceLog } from './service-log.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-log-'));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

test('writes every line to a file that only its owner can read, and shows warnings on one line', async () => {
  const file = join(directory, 'service.log');
  const shown: string[] = [];
  const log = openServiceLog(file, 'info', (line) => shown.push(line));
  log.logger.debug('not kept');
  log.logger.info('worker registered');
  log.logger.warn({ err: new Error('no space\nleft') }, 'the pool is empty');
  log.close();
  const lines = (await readFile(file, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ msg }) => msg)).toEqual(['worker registered', 'the pool is empty']);
  expect(lines[1].err.stack).toContain('service-log.test.ts');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(shown).toHaveLength(1);
  expect(shown[0]).toMatch(/the pool is empty: no space$/);
});

test('shows nothing more when nobody reads along any longer', async () => {
  const file = join(directory, 'service.log');
  const shown: string[] = [];
  const log = openServiceLog(file, 'info', (line) => shown.push(line));
  log.logger.warn('while it starts');
  log.stopShowing();
  log.logger.warn('much later');
  log.close();
  expect(shown).toHaveLength(1);
  expect(await readFile(file, 'utf8')).toContain('much later');
});

test('begins a new file when the log is too large, and keeps one older', async () => {
  const file = join(directory, 'service.log');
  const shown: string[] = [];
  const log = openServiceLog(file, 'info', (line) => shown.push(line));
  for (const round of ['first', 'second', 'third']) {
    log.logger.info(round);
    await truncate(file, 65 * 1024 * 1024);
  }
  log.logger.info('fourth');
  log.close();
  expect(shown).toEqual([]);
  expect((await readdir(directory)).sort()).toEqual(['service.log', 'service.log.1']);
  expect(JSON.parse(await readFile(file, 'utf8')).msg).toBe('fourth');
  expect((await readFile(`${file}.1`, 'utf8')).slice(0, 200)).toContain('third');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test('goes on in the same file, within a bound, while no new one can be begun', async () => {
  const file = join(directory, 'service.log');
  await mkdir(join(directory, 'service.log.1/in-the-way'), { recursive: true });
  const shown: string[] = [];
  const log = openServiceLog(file, 'info', (line) => shown.push(line));
  await truncate(file, 65 * 1024 * 1024);
  log.logger.info('still there');
  expect((await readFile(file, 'utf8')).slice(65 * 1024 * 1024)).toContain('still there');
  expect(shown).toEqual([expect.stringMatching(/^svc: cannot begin a new log: /)]);
  await truncate(file, 130 * 1024 * 1024);
  log.logger.info('again');
  log.close();
  expect((await stat(file)).size).toBeLessThan(1000);
});
