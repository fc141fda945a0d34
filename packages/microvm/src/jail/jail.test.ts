import { access, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '@svc/service-kit/process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { temporaryDirectory } from '../../test/temporary-directory.ts';
import type { Cgroups } from './cgroups/cgroups.ts';
import { Jail } from './jail.ts';

const NO_CGROUPS: Cgroups = {
  kind: 'none',
  add: async () => undefined,
  assign: async () => undefined,
  balance: async () => undefined,
  favour: async () => undefined,
  remove: async () => undefined,
  close: async () => undefined,
};

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

test('a jail that was mounted before the machine had KVM gets it, and stays read-only', async () => {
  const { path } = directory;
  const options = {
    runDir: join(path, 'run'),
    vmsDir: join(path, 'vms'),
    imageDir: join(path, 'images'),
    cgroups: NO_CGROUPS,
  };
  const root = join(options.runDir, 'jail');
  const jail = await Jail.open(options);
  try {
    await runProgram('mount', ['-o', 'remount,rw', root]);
    await rm(join(root, 'dev/kvm'), { force: true });
    await runProgram('mount', ['-o', 'remount,ro', root]);
    await Jail.open(options);
    expect(await exists(join(root, 'dev/kvm'))).toBe(await exists('/dev/kvm'));
    await expect(rm(join(root, 'dev/null'))).rejects.toMatchObject({ code: 'EROFS' });
  } finally {
    await jail.close();
  }
});
