import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedPostgres } from '@svc/store';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';

// Every command is a separate process, which takes seconds to start on a loaded machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });
const WAIT = { timeout: 60_000 };

/** A command with an operation that takes very long and writes all the time. Tells when it begins, and when nobody reads. */
const COMMAND = `
  const [, lifetime, errors, operatorFleet, pg, store] = process.argv;
  const { endWithoutReader } = await import(lifetime);
  const { exitCodeOf } = await import(errors);
  const { withFleet } = await import(operatorFleet);
  const { default: { Client } } = await import(pg);
  const { EmbeddedPostgres } = await import(store);
  endWithoutReader();
  process.stdout.on('error', () => console.error('no reader'));
  const writing = setInterval(() => console.log('…'), 20);
  try {
    await withFleet(async () => {
      const connectionString = await EmbeddedPostgres.runningUrl(process.env.SVC_DATA_DIR);
      const client = new Client({ connectionString });
      client.on('error', () => undefined);
      await client.connect();
      console.error('begun');
      await client.query('select pg_sleep(3600)');
    });
  } catch (error) {
    process.exitCode = exitCodeOf(error);
  } finally {
    clearInterval(writing);
  }
`;
const MODULES = [
  new URL('../process-lifetime.ts', import.meta.url).href,
  new URL('../output/errors.ts', import.meta.url).href,
  new URL('fleet/operator-fleet.ts', import.meta.url).href,
  import.meta.resolve('pg'),
  import.meta.resolve('@svc/store'),
];

let root: string;
let dataDirectory: string;

/** A service that has stopped. */
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-operator-'));
  // For the account of the server.
  await chmod(root, 0o755);
  dataDirectory = join(root, 'data');
  const server = await EmbeddedPostgres.start({ dataDirectory });
  await server.close();
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

function startCommand() {
  const env = { ...process.env, HOME: root, SVC_DATA_DIR: dataDirectory };
  const args = ['--input-type=module', '-e', COMMAND, ...MODULES];
  const command = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  command.stdout.resume();
  let errors = '';
  command.stderr.on('data', (data) => {
    errors += data;
  });
  return { command, said: () => errors, exited: once(command, 'exit') };
}

/** Ends a server that was left, so that other tests start without. Whether there was one. */
async function serverWasLeft(): Promise<boolean> {
  if ((await EmbeddedPostgres.runningUrl(dataDirectory)) === undefined) return false;
  const server = await EmbeddedPostgres.start({ dataDirectory });
  await server.close();
  return true;
}

// From a terminal, Ctrl-C arrives twice under npm.
test.each([[['SIGINT', 'SIGINT']], [['SIGHUP']]] as const)(
  'a command for operators that is interrupted by %j ends the database that it has started',
  async (signals) => {
    const { command, said, exited } = startCommand();
    await expect.poll(said, WAIT).toContain('begun');
    for (const signal of signals) command.kill(signal);
    const exit = await exited;
    const wasLeft = await serverWasLeft();
    expect({ exit, wasLeft }, said()).toEqual({ exit: [130, null], wasLeft: false });
  },
);

test('a command for operators whose output nobody reads any more goes on, and ends in order', async () => {
  const { command, said, exited } = startCommand();
  await expect.poll(said, WAIT).toContain('begun');
  command.stdout.destroy();
  await expect.poll(said, WAIT).toContain('no reader');
  command.kill('SIGTERM');
  const exit = await exited;
  const wasLeft = await serverWasLeft();
  expect({ exit, wasLeft }, said()).toEqual({ exit: [130, null], wasLeft: false });
});
