import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { diskOfVms } from './disk-of-vms.ts';

const MIB = 1024 * 1024;

let vmsDir: string;

beforeEach(async () => {
  vmsDir = await mkdtemp(join(tmpdir(), 'svc-vms-disk-'));
});
afterEach(() => rm(vmsDir, { recursive: true, force: true }));

test('counts what the disks of all VMs hold, not their size', async () => {
  expect(await diskOfVms(vmsDir)).toBe(0);
  for (const id of ['m_1', 'm_2']) {
    const files = join(vmsDir, id, 'files');
    await mkdir(files, { recursive: true });
    await writeFile(join(files, 'disk.qcow2'), Buffer.alloc(MIB, 'x'), { flush: true });
    await truncate(join(files, 'disk.qcow2'), 64 * MIB);
  }
  // Its restore was cut off.
  await mkdir(join(vmsDir, 'm_3'));
  await writeFile(join(vmsDir, 'note'), 'of an operator');
  const bytes = await diskOfVms(vmsDir);
  expect(bytes).toBeGreaterThanOrEqual(2 * MIB);
  expect(bytes).toBeLessThan(4 * MIB);
});
