import { afterAll, beforeAll, expect, test } from 'vitest';
import { shared } from '../../test/shared-service.ts';
import type { Account } from '../../test/sign-up.ts';
import { TestSandbox } from '../../test/test-sandbox.ts';

/** QEMU needs special care for guests of 2 GiB. */
const SIZE = { vcpu: 2, memory_mib: 1536, disk_mib: 6144 };
/** Memory is rounded up to a power of two. */
const GIVEN = { ...SIZE, memory_mib: 2048 };
let account: Account;
let large: TestSandbox;

beforeAll(async () => {
  account = await shared.signUp();
  large = await TestSandbox.create(account, SIZE);
});
afterAll(async () => {
  await large?.delete();
  await account.client.close();
});

/** The size that the guest reports: CPUs, and MiB of memory and of the root file system. */
async function sizeInside(sandbox: TestSandbox) {
  const seen = await sandbox.run(
    'nproc; grep MemTotal /proc/meminfo | tr -dc 0-9; echo; df --output=size -k / | tail -1',
  );
  const [cpus = 0, memoryKib = 0, diskKib = 0] = seen.split('\n').map(Number);
  return { cpus, memoryMib: memoryKib / 1024, diskMib: diskKib / 1024 };
}

test('a sandbox has the requested size, rounded up', async () => {
  expect(await account.client.sandboxes.get(large.id)).toMatchObject(GIVEN);
  const { cpus, memoryMib, diskMib } = await sizeInside(large);
  expect(cpus).toBe(2);
  // The kernel and the file system reserve some of it.
  expect(memoryMib).toBeGreaterThan(1800);
  expect(memoryMib).toBeLessThanOrEqual(2048);
  expect(diskMib).toBeGreaterThan(5500);
  expect(diskMib).toBeLessThanOrEqual(6144);
});

test('a sandbox without a requested size has the size of the template', async () => {
  const plain = await TestSandbox.create(account);
  const record = await account.client.sandboxes.get(plain.id);
  const { cpus, memoryMib, diskMib } = await sizeInside(plain);
  expect(cpus).toBe(record.vcpu);
  expect(memoryMib).toBeGreaterThan(record.memory_mib * 0.8);
  expect(memoryMib).toBeLessThanOrEqual(record.memory_mib);
  expect(diskMib).toBeLessThanOrEqual(record.disk_mib);
  await plain.delete();
});

test('the disk and the memory can be used up to their size', async () => {
  await large.run('fallocate -l 4500M /root/much && rm /root/much');
  const many = 1600 << 20;
  expect(await large.run(`python3 -c "print(len(bytearray(${many})))"`)).toBe(String(many));
});
