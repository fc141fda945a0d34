import { expect, test } from 'vitest';
import type { Image } from '../image/image.ts';
import type { HostResources } from '../resources/host-resources.ts';
import { restoreMicrovm } from './restore-microvm.ts';

const IMAGE: Image = {
  template: 'standard',
  id: '1',
  rootfs: '1.ext4',
  directory: '/images/standard/1',
  disk: ['/images/standard/1/1.ext4'],
  vcpu: 1,
  memoryMib: 512,
  diskMib: 1024,
  builds: [],
  kernelPath: '/images/standard/1/vmlinuz',
  initrdPath: '/images/standard/1/initrd',
  warmUp: [],
  idleWarmUp: [],
};

/** Resources whose VM cannot be limited, killed or removed. */
function stuckResources() {
  const taken: string[] = [];
  const logged: unknown[] = [];
  const take = (step: string) => async () => {
    taken.push(step);
  };
  const failing = (step: string) => async () => {
    taken.push(step);
    throw new Error(`${step}: stuck`);
  };
  const vm = { identity: { pid: 1 }, kill: failing('kill') };
  const resources = {
    slots: { take: async () => ({ index: 1, address: '127.0.0.1' }), release: take('release') },
    jail: {
      prepare: take('prepare'),
      confine: () => ({ limit: failing('limit') }),
      imagePath: (path: string) => path,
      directoryOf: (id: string) => `/vms/${id}`,
      remove: failing('remove'),
    },
    vmm: { snapshotKey: 'key', restore: async () => vm },
    sshKey: { publicKey: '' },
    logger: { error: (fields: { err: unknown }) => logged.push(fields.err) },
  } as unknown as HostResources;
  return { resources, taken, logged };
}

test('a failed restore takes every step of its undo, and reports its own failure', async () => {
  const { resources, taken, logged } = stuckResources();
  const request = { id: 'm_1', template: 'standard' };
  const restoring = restoreMicrovm(resources, IMAGE, request, AbortSignal.timeout(10_000));
  await expect(restoring).rejects.toThrow('limit: stuck');
  expect(taken).toEqual(['prepare', 'limit', 'kill', 'remove', 'release']);
  expect(logged).toMatchObject([
    { message: 'cannot end the process: kill: stuck; cannot remove the directory: remove: stuck' },
  ]);
});
