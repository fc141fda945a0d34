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
  change: (tree: MicrovmTree) => Partial<MicrovmTree> = () => ({}),
) {
  const root = join(daemon.directory, tenantId);
  const tree = daemon.tree(root);
  const workspace = new SandboxWorkspace({
    owner: { vmId: tenantId, generation: 1 },
    tenantId,
    deps,
    tree: {
      list: tree.list.bind(tree),
      write: tree.write.bind(tree),
      read: tree.read.bind(tree),
      ...change(tree),
    },
    isRunning: () => true,
    onFault: () => undefined,
  });
  return { root, workspace };
}

/** Ways in which a guest keeps a flush waiting until it goes on. */
const SILENCES: Readonly<
  Record<string, (tree: MicrovmTree, goOn: () => Promise<void>) => Partial<MicrovmTree>>
> = {
  'look at their files': (tree, goOn) => ({
    list: (request, limit, whileLooking = (looked) => looked) =>
      tree.list(request, limit, (looked) => whileLooking(goOn().then(() => looked))),
  }),
  'send a file': (tree, goOn) => ({
    async *read(ranges, limit) {
      await goOn();
      yield* tree.read(ranges, limit);
    },
  }),
};

it.each(Object.entries(SILENCES))(
  'guests of several tenants that never %s do not keep another one from flushing',
  async (_name, silence) => {
    const stored = new MemoryWorkspace();
    const released = Promise.withResolvers<void>();
    let silent = 0;
    const goOn = (): Promise<void> => {
      silent += 1;
      return released.promise;
    };
    const changed = async (tenantId: string, isSilent: () => boolean) => {
      const { root, workspace } = workspaceOf(tenantId, stored, (tree) =>
        silence(tree, () => (isSilent() ? goOn() : Promise.resolve())),
      );
      await workspace.load(signal);
      await writeFile(join(root, tenantId), tenantId);
      return workspace;
    };
    let areSilent = false;
    const tenants = ['a', 'b', 'c', 'd', 'e'];
    const hostile = await Promise.all(tenants.map((name) => changed(name, () => areSilent)));
    areSilent = true;
    const flushes = hostile.map((workspace) => workspace.flush(signal));
    await expect.poll(() => silent).toBeGreaterThanOrEqual(2);
    const other = await changed('other', () => false);
    await other.flush(signal);
    expect(stored.paths).toEqual(['other']);
    released.resolve();
    await Promise.all(flushes);
    expect(stored.paths).toEqual([...tenants, 'other']);
  },
);

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
