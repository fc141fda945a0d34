import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { MicrovmTree } from '@svc/microvm';
import { type GuestDaemon, startGuestDaemon } from '@svc/microvm/testing';
import { Slots, sleep } from '@svc/service-kit/concurrency';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { MemoryWorkspace } from '../../test/memory-workspace.ts';
import { SandboxWorkspace } from './sandbox-workspace.ts';

const { signal } = new AbortController();

let daemon: GuestDaemon;

beforeAll(async () => {
  daemon = await startGuestDaemon();
});

afterAll(() => daemon.stop());

afterEach(() => daemon.closeTrees());

/** The workspace of a tenant with this name, in a directory on this machine. */
function workspaceOf(
  tenantId: string,
  { deps }: Pick<MemoryWorkspace, 'deps'>,
  read: (tree: MicrovmTree) => MicrovmTree['read'] = (tree) => tree.read.bind(tree),
) {
  const root = join(daemon.directory, tenantId);
  const tree = daemon.tree(root);
  const workspace = new SandboxWorkspace({
    owner: { vmId: tenantId, generation: 1 },
    tenantId,
    deps,
    tree: { list: tree.list.bind(tree), write: tree.write.bind(tree), read: read(tree) },
    isRunning: () => true,
    onFault: () => undefined,
  });
  return { root, workspace };
}

it('guests of several tenants that stop sending do not keep another one from flushing', async () => {
  const stored = new MemoryWorkspace();
  const goOn = Promise.withResolvers<void>();
  let stopped = 0;
  const flushOf = async (tenantId: string, read?: (tree: MicrovmTree) => MicrovmTree['read']) => {
    const { root, workspace } = workspaceOf(tenantId, stored, read);
    await workspace.load(signal);
    await writeFile(join(root, tenantId), tenantId);
    return workspace.flush(signal);
  };
  const silent = ['a', 'b', 'c', 'd', 'e'].map((tenantId) =>
    flushOf(
      tenantId,
      (tree) =>
        async function* (ranges, limit) {
          stopped += 1;
          await goOn.promise;
          yield* tree.read(ranges, limit);
        },
    ),
  );
  await expect.poll(() => stopped).toBeGreaterThanOrEqual(2);
  await flushOf('other');
  expect(stored.paths).toEqual(['other']);
  goOn.resolve();
  await Promise.all(silent);
  expect(stored.paths).toEqual(['a', 'b', 'c', 'd', 'e', 'other']);
});

it('a load of much does not keep another tenant waiting until its end', async () => {
  const [large, small] = [new MemoryWorkspace(), new MemoryWorkspace()];
  const loads = new Slots(1);
  const sharing = ({ deps }: MemoryWorkspace) => ({
    deps: { ...deps, slots: { ...deps.slots, loads } },
  });
  const files = Array.from({ length: 200 }, (_, index) => `file${index}`);
  for (const file of files) large.upload(file, Buffer.from(file));
  large.pageSize = 1;
  const order: string[] = [];
  large.onCall = async () => {
    if (order.length === 0) await sleep(50, signal);
  };
  await Promise.all([
    workspaceOf('large', sharing(large))
      .workspace.load(signal)
      .then(() => order.push('large')),
    workspaceOf('small', sharing(small))
      .workspace.load(signal)
      .then(() => order.push('small')),
  ]);
  expect(order).toEqual(['small', 'large']);
});
