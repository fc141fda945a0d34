import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LIMITS } from '@svc/contract';
import { until } from '@svc/service-driver';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { NeighbourLatency } from '../../test/neighbour-latency.ts';
import { shared } from '../../test/shared-service.ts';
import type { Account } from '../../test/sign-up.ts';
import { TestSandbox, useSandbox } from '../../test/test-sandbox.ts';

const MIB = 1024 * 1024;
const neighbour = useSandbox();
let account: Account;
let attacker: TestSandbox;
let latency: NeighbourLatency;

beforeAll(async () => {
  account = await shared.signUp();
});
afterAll(() => account.client.close());
beforeEach(async () => {
  attacker = await TestSandbox.create(account);
  latency = await NeighbourLatency.measure(neighbour());
});
// Whatever happened in it: a sandbox can be deleted.
afterEach(() => attacker.delete());

/** Starts a command that does not end by itself; `end` makes its caller leave. */
function hold(command: string) {
  const leaving = new AbortController();
  const outcome = attacker.exec({ command, timeout_seconds: 600 }, { signal: leaving.signal }).then(
    (answer) => answer,
    (error: unknown) => error,
  );
  return {
    async end() {
      leaving.abort();
      return outcome;
    },
  };
}

/** Memory of the service's process in MiB. */
async function serviceMemoryMib(): Promise<number> {
  const record = await readFile(join(shared.address.dataDir, 'service.json'), 'utf8');
  const { pid } = (JSON.parse(record) as { process: { pid: number } }).process;
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

test('a fork bomb holds up only its own sandbox', async () => {
  const bomb = hold('echo > /tmp/started; bomb() { bomb | bomb & }; bomb; sleep 600');
  await latency.expectUnaffected();
  // It does go off: the sandbox is crowded, or too busy to say so.
  const crowd = () =>
    attacker.exec('echo /proc/[0-9]* | wc -w', { timeoutMs: 5000 }).then(
      ({ output }) => Number(output),
      () => Number.POSITIVE_INFINITY,
    );
  await expect.poll(crowd).toBeGreaterThan(100);
  expect(await account.client.sandboxes.get(attacker.id)).toMatchObject({ state: 'running' });
  await bomb.end();
  await latency.expectUnaffected();
});

test('filling the memory ends the filler; its sandbox and the neighbour go on', async () => {
  const fill = attacker.exec({
    command: 'python3 -c "held = []\nwhile True: held.append(bytearray(16 << 20))"',
    timeout_seconds: 120,
  });
  await latency.expectUnaffected();
  expect((await fill).exit_code).not.toBe(0);
  expect(await attacker.run('echo alive')).toBe('alive');
  await latency.expectUnaffected();
});

test('filling file systems in memory ends nothing but the filling', async () => {
  await attacker.exec({
    command:
      'for d in /dev/shm /run; do n=0; while fallocate -l 16M $d/fill-$n; do n=$((n+1)); done; done',
    timeout_seconds: 60,
  });
  await latency.expectUnaffected();
  await attacker.exec('rm -f /dev/shm/fill-* /run/fill-*');
  expect(await attacker.run('echo alive')).toBe('alive');
});

test('filling the disk fills only its own', async () => {
  await attacker.run(
    'fallocate -l $(( $(df --output=avail -B1 / | tail -1) - 209715200 )) /root/most',
  );
  const fill = attacker.exec('cat /dev/zero > /root/rest');
  await latency.expectUnaffected();
  expect(await fill).toMatchObject({ exit_code: 1 });
  expect((await fill).output).toContain('No space left');
  await neighbour().run('head -c 1000000 /dev/zero > /root/fits; rm /root/fits');
  expect(await attacker.run('rm /root/most /root/rest; echo > /root/again; echo alive')).toBe(
    'alive',
  );
});

test('floods of output cost the service a bounded memory', async () => {
  const before = await serviceMemoryMib();
  const floods = Array.from({ length: 4 }, () =>
    attacker.exec({ command: 'cat /dev/zero | tr "\\0" x', timeout_seconds: 8 }),
  );
  await latency.expectUnaffected();
  for (const { truncated, output } of await Promise.all(floods)) {
    expect(output.length).toBeLessThanOrEqual(LIMITS.execOutputBytes);
    expect(truncated || output.length < LIMITS.execOutputBytes).toBe(true);
  }
  expect((await serviceMemoryMib()) - before).toBeLessThan(400);
});

test('a stream that nobody reads holds back the command, not the service', async () => {
  const before = await serviceMemoryMib();
  const events = account.client.sandboxes.execStream(attacker.id, {
    command: 'cat /dev/zero | tr "\\0" x',
    timeout_seconds: 600,
  });
  await events.next();
  await latency.expectUnaffected();
  expect((await serviceMemoryMib()) - before).toBeLessThan(200);
  await events.return();
  await until('the command is gone', async () => {
    const { exit_code } = await attacker.exec('pgrep -x tr');
    return exit_code !== 0;
  });
});

test('commands held open for ever leave room for the others, and end with their sandbox', async () => {
  const held = Array.from({ length: LIMITS.execsPerSandbox }, () => hold('exec sleep infinity'));
  await latency.expectUnaffected();
  await attacker.delete();
  for (const one of held) {
    expect(await one.end()).toBeInstanceOf(Error);
  }
  await latency.expectUnaffected();
});

test('a guest that kills everything it can, or stops, is still deleted', async () => {
  await attacker.exec({ command: 'kill -9 -1', timeout_seconds: 10 }).catch(() => undefined);
  await attacker
    .exec({ command: 'echo c > /proc/sysrq-trigger', timeout_seconds: 5 }, { timeoutMs: 30_000 })
    .catch(() => undefined);
  await latency.expectUnaffected();
  await attacker.delete();
  expect(await account.client.sandboxes.get(attacker.id)).toMatchObject({ state: 'destroyed' });
});

test('large uploads at once cost the service a bounded memory', async () => {
  const before = await serviceMemoryMib();
  async function* zeros(): AsyncGenerator<Buffer> {
    for (let n = 0; n < 48; n += 1) yield Buffer.alloc(MIB);
  }
  const { files } = account.client.sandboxes;
  await Promise.all([1, 2, 3].map((n) => files.write(attacker.id, `/root/large-${n}`, zeros())));
  expect((await serviceMemoryMib()) - before).toBeLessThan(200);
  await latency.expectUnaffected();
});
