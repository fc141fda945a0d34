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

test('the key is made once', async () => {
  const key = await ensureSshKey(path);
  expect(await ensureSshKey(path)).toEqual(key);
});

test('a key that cannot be read is made anew, fresh or kept', async () => {
  let made = 0;
  const generate = () => {
    made += 1;
    return made < 3 ? UNREADABLE : generateSshKey();
  };
  // The generator's own are not always readable either.
  const key = await ensureSshKey(path, generate);
  expect(made).toBeGreaterThanOrEqual(3);
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(key);
  await writeFile(path, JSON.stringify(UNREADABLE));
  expect((await ensureSshKey(path)).privateKey).toContain('OPENSSH');
});
