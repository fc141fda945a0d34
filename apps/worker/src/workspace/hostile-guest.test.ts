import {
  MicrovmError,
  type MicrovmTree,
  type TreeEntry,
  type TreeListing,
  type TreeRangeStatus,
} from '@svc/microvm';
import { beforeEach, expect, it } from 'vitest';
import { MemoryWorkspace } from '../../test/memory-workspace.ts';
import { SandboxWorkspace } from './sandbox-workspace.ts';

const EACH = 50_000;
const TURNS = 4;

let stored: MemoryWorkspace;

beforeEach(() => {
  stored = new MemoryWorkspace();
});

const signal = () => AbortSignal.timeout(120_000);

const entryOf = (path: string): TreeEntry => ({
  kind: 'file',
  path: Buffer.from(path),
  mode: 0o644,
  mtimeNs: 0n,
  ctimeNs: 0n,
  size: 1,
  inode: 1n,
  target: Buffer.alloc(0),
});

/** A guest that lists files without end. */
class Guest implements MicrovmTree {
  /** The listings that the worker acknowledged. */
  readonly acknowledged: (string | undefined)[] = [];
  isHonest = false;
  /** Files that the worker asked for. */
  asked = 0;
  /** Answers a read of this many ranges. */
  readonly #read: (ranges: number) => ReturnType<MicrovmTree['read']>;

  constructor(read: (ranges: number) => ReturnType<MicrovmTree['read']>) {
    this.#read = read;
  }

  list: MicrovmTree['list'] = async ({ since }) => {
    this.acknowledged.push(since);
    const turn = this.acknowledged.length;
    const listing = { generation: `${turn}`, deleted: [], skipped: 0 };
    if (this.isHonest) return { ...listing, complete: since === undefined, changed: [] };
    const names = Array.from({ length: EACH }, (_, index) => `${turn}-${index}`);
    return { ...listing, complete: false, changed: names.map(entryOf) } satisfies TreeListing;
  };

  read: MicrovmTree['read'] = (ranges) => {
    this.asked += ranges.length;
    return this.isHonest ? answer(ranges.length, 'gone') : this.#read(ranges.length);
  };

  write: MicrovmTree['write'] = async () => [];
}

async function* answer(ranges: number, status: TreeRangeStatus): ReturnType<MicrovmTree['read']> {
  for (let range = 0; range < ranges; range += 1) yield { range, status };
}

function workspaceOf(tree: MicrovmTree): SandboxWorkspace {
  return new SandboxWorkspace({
    owner: { vmId: 'vm_1', generation: 1 },
    tenantId: 't',
    deps: stored.deps,
    tree,
    isRunning: () => true,
    onFault: () => undefined,
  });
}

it('whose flushes fail is listed completely again, instead of having all its paths remembered', async () => {
  const guest = new Guest(async function* () {
    yield* [];
    throw new MicrovmError('internal', 'the guest broke the protocol');
  });
  const workspace = workspaceOf(guest);
  await workspace.load(signal());
  for (let turn = 0; turn < TURNS; turn += 1) {
    await expect(workspace.flush(signal())).rejects.toMatchObject({ code: 'internal' });
  }
  expect(guest.acknowledged.filter((since) => since === undefined).length).toBeGreaterThan(1);
  guest.isHonest = true;
  guest.asked = 0;
  await workspace.flush(signal());
  expect(guest.asked).toBeLessThan((TURNS - 1) * EACH);
});

it('that refuses to send its files has few of them remembered', async () => {
  const guest = new Guest((ranges) => answer(ranges, 'refused'));
  const workspace = workspaceOf(guest);
  await workspace.load(signal());
  await workspace.flush(signal());
  expect(workspace.refused.size).toBe(1000);
});
