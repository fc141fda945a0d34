import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shared } from '../../test/shared-service.ts';
import type { Account } from '../../test/sign-up.ts';
import { TestSandbox } from '../../test/test-sandbox.ts';

let account: Account;
let clones: TestSandbox[];

beforeAll(async () => {
  account = await shared.signUp();
  clones = await Promise.all([1, 2, 3].map(() => TestSandbox.create(account)));
});
afterAll(async () => {
  await Promise.all((clones ?? []).map((clone) => clone.delete()));
  await account.client.close();
});

/** Runs a command in every clone. Fails unless every output matches `form` and no two are equal. */
async function expectDifferent(command: string, form: RegExp): Promise<void> {
  const seen = await Promise.all(clones.map((clone) => clone.run(command)));
  for (const output of seen) expect(output, command).toMatch(form);
  expect(new Set(seen).size, `${command}: ${seen.join(' ')}`).toBe(clones.length);
}

test.each<[string, string, RegExp]>([
  ['/dev/urandom', 'head -c 32 /dev/urandom | od -An -tx1 | tr -d " \\n"', /^[0-9a-f]{64}$/],
  ['getrandom', 'python3 -c "import os; print(os.getrandom(32).hex())"', /^[0-9a-f]{64}$/],
  ['machine-id', 'cat /etc/machine-id', /^[0-9a-f]{32}$/],
  ['the host name', 'hostname', /^\S+$/],
  ['the boot id', 'cat /proc/sys/kernel/random/boot_id', /^[0-9a-f-]{36}$/],
  [
    'the SSH server’s host key',
    'ssh-keyscan -t ed25519 127.0.0.1 2>&1 | grep -v "^#" | cut -d " " -f 3',
    /^AAAA\S+$/,
  ],
  ['the SSH host key on disk', 'cat /etc/dropbear/*host_key | sha256sum', /^[0-9a-f]{64}/],
])('clones differ in %s', async (_name, command, form) => {
  await expectDifferent(command, form);
});

test('the host name is in /etc/hostname and resolves', async () => {
  const command = 'test "$(hostname)" = "$(cat /etc/hostname)" && getent hosts $(hostname)';
  const entries = await Promise.all(clones.map((clone) => clone.run(command)));
  for (const entry of entries) expect(entry).toMatch(/^127\./);
});

test('the worker’s machine reaches the SSH server at host_port', async () => {
  for (const { endpoint, hostPort } of clones) {
    const host = endpoint?.replace(/:\d+$/, '') ?? '127.0.0.1';
    const socket = connect({ host, port: hostPort });
    const [greeting] = await once(socket, 'data', { signal: AbortSignal.timeout(30_000) });
    expect(String(greeting)).toMatch(/^SSH-2\.0-/);
    socket.destroy();
  }
  expect(new Set(clones.map(({ endpoint, hostPort }) => `${endpoint}:${hostPort}`)).size).toBe(3);
});

test('clocks differ from the host’s by less than a second', async () => {
  for (const clone of clones) {
    const before = Date.now() / 1000;
    const guest = Number(await clone.run('date +%s.%N'));
    const after = Date.now() / 1000;
    expect(guest).toBeGreaterThan(before - 1);
    expect(guest).toBeLessThan(after + 1);
  }
});

test('no clone sees the files of another', async () => {
  const [first, ...others] = clones;
  await first?.run('echo mine > /root/only-here; mkdir -p /dev/shm/only-here');
  for (const other of others)
    await other.run('test ! -e /root/only-here -a ! -e /dev/shm/only-here');
});
