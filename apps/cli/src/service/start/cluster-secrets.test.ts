import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clusterSecrets, knownClusterSecrets, rereadClusterSecrets } from './cluster-secrets.ts';

const SECRETS = ['first', 'second'].map((name) => `the ${name} secret, of more than 32 characters`);
const [FIRST = '', SECOND = ''] = SECRETS;

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-cli-cluster-secrets-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const config = (settings: Record<string, string> = {}) =>
  loadConfig({ SVC_DATA_DIR: directory, ...settings });
const revealed = async (secrets: ReturnType<typeof knownClusterSecrets>) =>
  (await secrets)?.map((secret) => secret.reveal());

test('one is generated in the data directory, once, and only at a start', async () => {
  const file = join(directory, 'cluster-secret');
  expect(await knownClusterSecrets(config())).toBeUndefined();
  await expect(rereadClusterSecrets(config())).rejects.toThrow(/there is none in/);
  const generated = await revealed(clusterSecrets(config()));
  expect(generated).toEqual([expect.stringMatching(/^[\w-]{43}$/)]);
  expect(await revealed(clusterSecrets(config()))).toEqual(generated);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  await writeFile(file, `${SECOND}\n${generated}\n`);
  expect(await revealed(rereadClusterSecrets(config()))).toEqual([SECOND, generated?.[0]]);
  const accepting = config({ SVC_CLUSTER_SECRET_ACCEPTED: FIRST });
  expect(await revealed(clusterSecrets(accepting))).toEqual([SECOND, generated?.[0], FIRST]);
});

test('the environment has one, and one more that is accepted', async () => {
  const settings = { SVC_CLUSTER_SECRET: FIRST };
  expect(await revealed(clusterSecrets(config(settings)))).toEqual([FIRST]);
  const both = config({ ...settings, SVC_CLUSTER_SECRET_ACCEPTED: SECOND });
  expect(await revealed(clusterSecrets(both))).toEqual([FIRST, SECOND]);
});

test('a configured file has one on each line, and is left as it is', async () => {
  const file = join(directory, 'mounted');
  const theirs = config({ SVC_CLUSTER_SECRET_FILE: file });
  await expect(clusterSecrets(theirs)).rejects.toThrow(/there is none in .*mounted/);
  const unreadable = config({ SVC_CLUSTER_SECRET_FILE: directory });
  await expect(clusterSecrets(unreadable)).rejects.toThrow(/cannot be used: EISDIR/);
  await writeFile(file, 'short');
  await expect(clusterSecrets(theirs)).rejects.toThrow(/has less than 32 characters/);
  const text = ` ${FIRST}\r\n\n${SECOND}`;
  await writeFile(file, text);
  expect(await revealed(clusterSecrets(theirs))).toEqual(SECRETS);
  expect(await readFile(file, 'utf8')).toBe(text);
});
