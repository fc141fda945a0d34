import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
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
