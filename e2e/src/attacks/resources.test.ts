import { LIMITS } from '@svc/contract';
import { readServiceRecord, residentMib, until } from '@svc/service-driver';
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
  latency = await NeighbourLatency.measure(neighbour());
});
afterAll(() => account.client.close());
beforeEach(async () => {
  attacker = await TestSandbox.create(account);
});
// A sandbox can be deleted regardless of its condition.
afterEach(() => attacker.delete());

/** Starts a command that runs until `end` closes the caller's connection. */
function hold(command: string) {
  const disconnect = new AbortController();
  const outcome = attacker
    .exec({ command, timeout_seconds: 600 }, { signal: disconnect.signal })
    .then(
      (answer) => answer,
      (error: unknown) => error,
    );
  return {
    async end() {
      disconnect.abort();
      return outcome;
    },
  };
}

/** Resident memory of the service's process, in MiB. */
async function serviceMemoryMib(): Promise<number> {
  const record = await readServiceRecord(shared.address.dataDir);
  return residentMib(record?.process.pid ?? Number.NaN);
}

test('a fork bomb slows down only its own sandbox', async () => {
  const bomb = hold('echo > /tmp/started; bomb() { bomb | bomb & }; bomb; sleep 600');
  await latency.expectUnaffected();
  // The bomb works: the sandbox has many processes, or is too busy to answer.
  const processes = () =>
    attacker.exec('echo /proc/[0-9]* | wc -w', { timeoutMs: 5000 }).then(
      ({ output }) => Number(output),
      () => Number.POSITIVE_INFINITY,
    );
  await expect.poll(processes).toBeGreaterThan(100);
  expect(await account.client.sandboxes.get(attacker.id)).toMatchObject({ state: 'running' });
  await bomb.end();
  await latency.expectUnaffected();
});

test('filling the memory ends only the process that fills it', async () => {
  const fill = attacker.exec({
    command: 'python3 -c "held = []\nwhile True: held.append(bytearray(16 << 20))"',
    timeout_seconds: 120,
  });
  const [{ exit_code }] = await Promise.all([fill, latency.expectUnaffected()]);
  expect(exit_code).not.toBe(0);
  expect(await attacker.run('echo alive')).toBe('alive');
  await latency.expectUnaffected();
});

test('filling the in-memory file systems ends only the process that fills them', async () => {
  await attacker.exec({
    command:
      'for d in /dev/shm /run; do n=0; while fallocate -l 16M $d/fill-$n; do n=$((n+1)); done; done',
    timeout_seconds: 60,
  });
  await latency.expectUnaffected();
  await attacker.exec('rm -f /dev/shm/fill-* /run/fill-*');
  expect(await attacker.run('echo alive')).toBe('alive');
});

test('filling the disk affects no other sandbox', async () => {
  await attacker.run(
    'fallocate -l $(( $(df --output=avail -B1 / | tail -1) - 209715200 )) /root/most',
  );
  const fill = attacker.exec('cat /dev/zero > /root/rest');
  const [filled] = await Promise.all([fill, latency.expectUnaffected()]);
  expect(filled).toMatchObject({ exit_code: 1 });
  expect(filled.output).toContain('No space left');
  await neighbour().run('head -c 1000000 /dev/zero > /root/fits; rm /root/fits');
  expect(await attacker.run('rm /root/most /root/rest; echo > /root/again; echo alive')).toBe(
    'alive',
  );
});

test('unlimited output costs the service a bounded amount of memory', async () => {
  const before = await serviceMemoryMib();
  const flood = () => attacker.exec({ command: 'cat /dev/zero | tr "\\0" x', timeout_seconds: 8 });
  const floods = Promise.all(Array.from({ length: 4 }, flood));
  const [answers] = await Promise.all([floods, latency.expectUnaffected()]);
  for (const { truncated, output } of answers) {
    expect(output.length).toBeLessThanOrEqual(LIMITS.execOutputBytes);
    expect(truncated || output.length < LIMITS.execOutputBytes).toBe(true);
  }
  expect((await serviceMemoryMib()) - before).toBeLessThan(400);
});

test('an unread stream blocks the command, not the service', async () => {
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

test('commands that never end do not block others, and end with their sandbox', async () => {
  const held = Array.from({ length: LIMITS.execsPerSandbox }, () => hold('exec sleep infinity'));
  await latency.expectUnaffected();
  await attacker.delete();
  for (const one of held) {
    expect(await one.end()).toBeInstanceOf(Error);
  }
  await latency.expectUnaffected();
});

test('a guest that kills all of its processes and crashes can still be deleted', async () => {
  await attacker.exec({ command: 'kill -9 -1', timeout_seconds: 10 }).catch(() => undefined);
  await attacker
    .exec({ command: 'echo c > /proc/sysrq-trigger', timeout_seconds: 5 }, { timeoutMs: 30_000 })
    .catch(() => undefined);
  await latency.expectUnaffected();
  await attacker.delete();
  expect(await account.client.sandboxes.get(attacker.id)).toMatchObject({ state: 'destroyed' });
});

test('large concurrent uploads cost the service a bounded amount of memory', async () => {
  const before = await serviceMemoryMib();
  async function* zeros(): AsyncGenerator<Buffer> {
    for (let n = 0; n < 48; n += 1) yield Buffer.alloc(MIB);
  }
  const { files } = account.client.sandboxes;
  await Promise.all([1, 2, 3].map((n) => files.write(attacker.id, `/root/large-${n}`, zeros())));
  expect((await serviceMemoryMib()) - before).toBeLessThan(200);
  await latency.expectUnaffected();
});
