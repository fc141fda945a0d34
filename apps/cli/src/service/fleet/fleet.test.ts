import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedPostgres } from '@svc/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { commandLine, startSvc } from '../../../test/run-svc.ts';

/** The first start on a machine builds the image. */
const TEST_MS = 1_200_000;
const CLUSTER = { SVC_CLUSTER_SECRET: 'of the test, and long enough for one' };

let directory: string;
let cleanUp: AsyncDisposableStack;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-fleet-'));
  cleanUp = new AsyncDisposableStack();
  cleanUp.defer(() => rm(directory, { recursive: true, force: true }));
});

afterEach(async () => {
  await cleanUp.disposeAsync();
});

/** Starts the PostgreSQL server that the components share. */
async function startDatabase(): Promise<string> {
  const postgres = await EmbeddedPostgres.start({ dataDirectory: join(directory, 'database') });
  cleanUp.defer(() => postgres.close());
  // Settings require a host in the URL; the socket directory in the query takes precedence over it.
  return postgres.url.replace('@/', '@localhost/');
}

/** Starts a component, waits until it logs that it is ready, and returns the fields of that line. */
async function startComponent(name: string, settings: Record<string, string>) {
  const environment = {
    ...CLUSTER,
    HOME: directory,
    SVC_DATA_DIR: join(directory, name),
    ...settings,
  };
  const component = startSvc(environment, [name]);
  const exited = once(component, 'exit');
  const stop = async (): Promise<unknown> => {
    component.kill('SIGTERM');
    const [code] = await exited;
    return code;
  };
  cleanUp.defer(async () => {
    await stop();
  });
  let output = '';
  component.stdout.on('data', (chunk) => {
    output += chunk;
  });
  component.stderr.on('data', (chunk) => {
    output += chunk;
  });
  const readyOrExited = () => output.includes('is ready') || component.exitCode !== null;
  await expect.poll(readyOrExited, { timeout: TEST_MS, interval: 100 }).toBe(true);
  const line = output.split('\n').find((text) => text.includes('is ready'));
  if (line === undefined) throw new Error(`the ${name} did not start: ${output}`);
  return { fields: JSON.parse(line) as { url?: string }, stop };
}

test(
  'a control plane and a worker in separate processes serve a customer',
  async () => {
    const images = process.env.SVC_IMAGE_DIR ?? join(homedir(), '.cache/svc/images');
    const controlPlane = await startComponent('control-plane', {
      SVC_DATABASE_URL: await startDatabase(),
      SVC_LISTEN: 'localhost:0',
    });
    const SVC_BASE_URL = String(controlPlane.fields.url);
    const SVC_CA_FILE = join(directory, 'control-plane/tls/ca.pem');
    const worker = await startComponent('worker', {
      SVC_CONTROL_PLANE_URL: SVC_BASE_URL,
      SVC_CA_FILE,
      SVC_IMAGE_DIR: images,
      SVC_POOL: 'standard=0',
    });

    const svc = commandLine({ HOME: directory, SVC_BASE_URL, SVC_CA_FILE });
    await svc(['login', 'ada@example.com']);
    await svc(['login', 'ada@example.com', '--code', await mailedCode()]);
    const id = (await svc(['sandbox', 'create'])).output.trim();
    expect(await svc(['sandbox', 'exec', id, 'whoami'])).toEqual({
      code: 0,
      output: 'root\n',
      errors: '',
    });

    expect(await worker.stop()).toBe(0);
    const { output } = await svc(['sandbox', 'get', id]);
    expect(JSON.parse(output)).toMatchObject({ state: 'destroyed', end_reason: 'drained' });
    expect(await controlPlane.stop()).toBe(0);
  },
  TEST_MS,
);

async function mailedCode(): Promise<string> {
  const outbox = join(directory, 'control-plane/outbox');
  const [name = ''] = await readdir(outbox);
  return /^Subject: (\d{6}) /m.exec(await readFile(join(outbox, name), 'utf8'))?.[1] ?? '';
}
