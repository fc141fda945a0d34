import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ensureSshKey, generateSshKey } from './ssh-key.ts';

const UNREADABLE = { privateKey: 'no key', publicKey: 'no key' };
let directory: string;
let path: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-ssh-key-'));
  path = join(directory, 'key.json');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test('generates the key once', async () => {
  const key = await ensureSshKey(path);
  expect(await ensureSshKey(path)).toEqual(key);
});

test('replaces an unreadable key, whether new or stored', async () => {
  let made = 0;
  const generate = () => {
    made += 1;
    return made < 3 ? UNREADABLE : generateSshKey();
  };
  // The real generator can also give unreadable keys, so the count may be higher.
  const key = await ensureSshKey(path, generate);
  expect(made).toBeGreaterThanOrEqual(3);
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(key);
  await writeFile(path, JSON.stringify(UNREADABLE));
  expect((await ensureSshKey(path)).privateKey).toContain('OPENSSH');
});
