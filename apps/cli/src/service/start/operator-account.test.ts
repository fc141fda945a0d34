import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { createLogger } from '@svc/service-kit/logging';
import { Shutdown } from '@svc/service-kit/process';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { commandLine, type Outcome } from '../../../test/run-svc.ts';
import {
  localCredentialsFile,
  readCredentials,
  writeCredentials,
} from '../../connection/credentials.ts';
import { servicePaths } from '../paths.ts';
import { NO_DRAIN_PLAN } from '../stop/drain-plan.ts';
import {
  localClient,
  type StartedControlPlane,
  startControlPlaneComponent,
} from './control-plane.ts';
import { operatorAccount } from './operator-account.ts';
import { openTls } from './tls.ts';

// Every command is a separate process, which takes seconds to start on a loaded machine.
vi.setConfig({ testTimeout: 120_000 });

let directory: string;
let shutdown: Shutdown;
let service: StartedControlPlane;
let svc: (args: readonly string[]) => Promise<Outcome>;

const paths = () => servicePaths(directory);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-account-'));
  svc = commandLine({ HOME: directory, SVC_DATA_DIR: directory });
  const config = loadConfig({ SVC_DATA_DIR: directory, SVC_LISTEN: 'localhost:0' });
  const logger = createLogger({ level: 'silent' });
  shutdown = new Shutdown(logger);
  const { signal } = new AbortController();
  const drain = NO_DRAIN_PLAN;
  const context = { config, paths: paths(), logger, shutdown, signal, drain };
  service = await startControlPlaneComponent(context, await openTls(config, paths()));
});

afterAll(async () => {
  expect(await shutdown.run('the test is over')).toEqual([]);
  await rm(directory, { recursive: true, force: true });
});

test('signs up once, stores the key, and gets a new one if it is rejected', async () => {
  const file = localCredentialsFile(directory);
  const first = await operatorAccount(paths(), service);
  await using client = localClient(service, first.api_key);
  expect(await client.tenants.me()).toMatchObject({ tenant_id: first.tenant_id });
  expect(await operatorAccount(paths(), service)).toEqual(first);
  expect(await readCredentials(file)).toEqual(first);
  await writeCredentials(file, { ...first, api_key: `svc_${'0'.repeat(64)}` });
  const next = await operatorAccount(paths(), service);
  expect(next.api_key).not.toBe(first.api_key);
  expect(next.tenant_id).toBe(first.tenant_id);
});

test('client commands use the stored key, and report that there is no worker', async () => {
  const { code, errors } = await svc(['sandbox', 'list']);
  expect(code).toBe(1);
  expect(errors).toMatch(/code: +no_workers/);
});

test('svc login stores a key of its own', async () => {
  const email = 'ada@example.com';
  const refused = await svc(['login', email, '--code', '000000']);
  expect(refused.errors).toMatch(/code: +otp_invalid/);
  const asked = await svc(['login', email]);
  expect(asked.errors).toMatch(/code: +no_code/);
  const signedIn = await svc(['login', email, '--code', await codeFor(email)]);
  expect(signedIn.errors).toBe('');
  expect(signedIn.code).toBe(0);
  const kept = await readCredentials(join(directory, '.config/svc/credentials.json'));
  expect(kept).toMatchObject({ email, base_url: service.baseUrl });
});

async function codeFor(email: string): Promise<string> {
  for (const name of (await readdir(paths().outbox)).sort().reverse()) {
    const message = await readFile(join(paths().outbox, name), 'utf8');
    const code = /^Subject: (\d{6}) /m.exec(message)?.[1];
    if (message.includes(email) && code !== undefined) return code;
  }
  throw new Error(`no message to ${email}`);
}
