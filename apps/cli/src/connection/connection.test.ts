import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connect, resolveConnection } from './client.ts';
import {
  type Credentials,
  localCredentialsFile,
  loginFile,
  readCredentials,
  writeCredentials,
} from './credentials.ts';

let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-cli-'));
});

afterEach(async () => {
  await rm(home, { recursive: true, force: true });
});

function credentials(name: string): Credentials {
  return {
    base_url: `https://${name}.test`,
    api_key: `key-of-${name}`,
    email: `${name}@svc.test`,
    tenant_id: `usr_${name}`,
    ca_file: `/${name}.pem`,
  };
}

const defaultDataDir = () => join(home, '.local/share/svc');

describe('stored credentials', () => {
  test('are readable only by their owner, even if they replace a file that others could read', async () => {
    const file = join(home, 'deep/credentials.json');
    await mkdir(join(home, 'deep'));
    await writeFile(file, '{}');
    await chmod(file, 0o644);
    await writeCredentials(file, credentials('a'));
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readCredentials(file)).toEqual(credentials('a'));
  });

  test.each(['', 'not json', '{"base_url":1}', 'null'])(
    'are undefined if the file contains %j',
    async (text) => {
      const file = join(home, 'credentials.json');
      await writeFile(file, text);
      expect(await readCredentials(file)).toBeUndefined();
    },
  );
});

describe('client commands', () => {
  test('prefer the last login to the default data directory', async () => {
    await writeCredentials(localCredentialsFile(defaultDataDir()), credentials('local'));
    expect(await resolveConnection({ HOME: home })).toMatchObject({
      baseUrl: 'https://local.test',
      caFile: '/local.pem',
    });
    await writeCredentials(loginFile({ HOME: home }), credentials('login'));
    expect(await resolveConnection({ HOME: home })).toEqual({
      baseUrl: 'https://login.test',
      apiKey: 'key-of-login',
      caFile: '/login.pem',
    });
  });

  test('prefer SVC_DATA_DIR to the last login', async () => {
    const dataDir = join(home, 'data');
    await writeCredentials(loginFile({ HOME: home }), credentials('login'));
    await writeCredentials(localCredentialsFile(dataDir), credentials('named'));
    expect(await resolveConnection({ HOME: home, SVC_DATA_DIR: dataDir })).toMatchObject({
      apiKey: 'key-of-named',
    });
  });

  test('prefer the environment, and never send a stored key to another service', async () => {
    await writeCredentials(loginFile({ HOME: home }), credentials('login'));
    expect(await resolveConnection({ HOME: home, SVC_BASE_URL: 'https://other.test' })).toEqual({
      baseUrl: 'https://other.test',
      apiKey: undefined,
      caFile: undefined,
    });
    expect(
      await resolveConnection({ HOME: home, SVC_API_KEY: 'mine', SVC_CA_FILE: '/x.pem' }),
    ).toEqual({ baseUrl: 'https://login.test', apiKey: 'mine', caFile: '/x.pem' });
  });

  test('fail with the next step if no service or no API key is known', async () => {
    await expect(resolveConnection({ HOME: home })).rejects.toMatchObject({
      code: 'no_service_known',
    });
    await expect(connect({ HOME: home, SVC_BASE_URL: 'https://a.test' })).rejects.toMatchObject({
      code: 'not_signed_in',
    });
  });
});
