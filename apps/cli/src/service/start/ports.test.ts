import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { createLogger } from '@svc/service-kit/logging';
import { Shutdown } from '@svc/service-kit/process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { commandLine } from '../../../test/run-svc.ts';
import { Progress } from '../../output/progress.ts';
import { servicePaths } from '../paths.ts';
import { NO_DRAIN_PLAN } from '../stop/drain-plan.ts';
import { openIdentity } from './identity.ts';
import { startRuntimeComponent } from './runtime-host.ts';
import { startService } from './start-service.ts';
import { openTls } from './tls.ts';

let directory: string;
let other: Server;
let taken: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-ports-'));
  other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  taken = `127.0.0.1:${(other.address() as AddressInfo).port}`;
});

afterAll(async () => {
  other.close();
  await rm(directory, { recursive: true, force: true });
});

const logger = createLogger({ level: 'silent' });
const { signal } = new AbortController();

test.each(['SVC_LISTEN', 'SVC_RUNTIME_LISTEN'])(
  'fails before starting any component if the address of %s is taken',
  async (setting) => {
    const config = loadConfig({
      SVC_DATA_DIR: directory,
      SVC_LISTEN: '127.0.0.1:0',
      [setting]: taken,
    });
    const started = startService({
      config,
      paths: servicePaths(directory),
      logger,
      progress: new Progress(),
      signal,
      keepSandboxes: () => false,
      drain: NO_DRAIN_PLAN,
    });
    await expect(started).rejects.toMatchObject({
      code: 'port_in_use',
      message: expect.stringContaining(taken),
      next: expect.stringContaining(setting),
    });
  },
);

test('a component of a fleet reports a taken address, too', async () => {
  const svc = commandLine({
    HOME: directory,
    SVC_DATA_DIR: join(directory, 'runtime'),
    SVC_CLUSTER_SECRET: 'of the test, and long enough for one',
    SVC_CONTROL_PLANE_URL: 'https://localhost:1',
    SVC_RUNTIME_LISTEN: taken,
  });
  const { code, errors } = await svc(['runtime']);
  expect(code).toBe(1);
  expect(errors).toMatch(
    /^svc: another program is already listening on 127.0.0.1:\d+\n {2}next: .*SVC_RUNTIME_LISTEN.*\n {2}code: +port_in_use\n$/m,
  );
});

test('a runtime host of a fleet fails without the address of its control plane', async () => {
  const svc = commandLine({ HOME: directory, SVC_DATA_DIR: join(directory, 'alone') });
  expect((await svc(['runtime'])).errors).toMatch(/code: +fleet_incomplete/);
});

test('a runtime host starts before its control plane and returns its address', async () => {
  const config = loadConfig({ SVC_DATA_DIR: directory, SVC_RUNTIME_LISTEN: 'localhost:0' });
  const paths = servicePaths(directory);
  const shutdown = new Shutdown(logger);
  const context = { config, paths, logger, shutdown, signal, drain: NO_DRAIN_PLAN };
  const identity = await openIdentity(config, 'runtime');
  const never = new Promise<never>(() => undefined);
  const tls = await openTls(config, paths);
  const { runtimeUrl, localUrl } = await startRuntimeComponent(context, identity, tls, never);
  expect(runtimeUrl).toMatch(/^wss:\/\/localhost:[1-9]\d*$/);
  expect(localUrl).toBe(runtimeUrl);
  expect(await shutdown.run('the test is over')).toEqual([]);
});
