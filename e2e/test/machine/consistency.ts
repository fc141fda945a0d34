import { until, vmRecords } from '@svc/service-driver';
import type { Account } from '../sign-up.ts';
import { type Footprint, footprintOf } from './footprint.ts';
import type { InstanceNames } from './instance.ts';
import { ledgerUse } from './ledger.ts';

const SETTLE_MS = 180_000;

/** The number of resources of each kind that an idle service holds. */
export type IdleState = Readonly<Record<string, number>>;

/** Kinds whose number is the same whenever the service is idle; that of database connections is not. */
const COUNTED = [
  'vms',
  'namespaces',
  'interfaces',
  'addresses',
  'mounts',
  'cgroups',
  'tables',
  'runtimeFiles',
  'ports',
  'vmDirectories',
  'temporaryFiles',
] as const satisfies readonly (keyof Footprint)[];

/** Time between the two looks of {@link idleState}: long enough for a restore to acquire its next resource. */
const STABLE_MS = 250;
/** Each look runs four programs, so more frequent polling would slow down the service under test. */
const POLL_MS = 100;

/** Waits until the service holds no sandbox, its pool is full, and two successive looks find the same resources. */
export async function idleState(instance: InstanceNames, poolSize: number): Promise<IdleState> {
  let before = '';
  return until(
    'the service is idle',
    async () => {
      const { footprint, counts } = await look(instance);
      const now = JSON.stringify(counts);
      const settled = now === before && footprint.vms.length === poolSize;
      before = now;
      return settled && (await isEmptyLedger(instance.dataDir)) ? counts : undefined;
    },
    { deadlineMs: SETTLE_MS, intervalMs: STABLE_MS },
  );
}

/** Waits until the service holds the same resources as when it was idle. @throws Error that lists the difference */
export async function returnsToIdle(instance: InstanceNames, idle: IdleState): Promise<void> {
  let last: Awaited<ReturnType<typeof look>> | undefined;
  const back = async () => {
    last = await look(instance);
    return JSON.stringify(last.counts) === JSON.stringify(idle) && isEmptyLedger(instance.dataDir);
  };
  try {
    await until('the service is idle again', back, { deadlineMs: SETTLE_MS, intervalMs: POLL_MS });
  } catch (cause) {
    const ledger = await ledgerUse(instance.dataDir);
    const found = JSON.stringify(
      { idle, now: last?.counts, ledger, all: last?.footprint },
      null,
      1,
    );
    throw new Error(`resources are left over or missing: ${found}`, { cause });
  }
}

/**
 * Waits until the ledger and the machine agree: each sandbox that is alive in the ledger has a VM, and each VM
 * belongs to such a sandbox or to the pool. Then runs a command in every sandbox, and returns their sorted ids.
 */
export async function ledgerAgrees(
  instance: InstanceNames,
  account: Account,
  poolSize: number,
): Promise<string[]> {
  let seen: unknown;
  const agreed = async () => {
    const { sandboxes } = await account.client.sandboxes.list();
    const living = sandboxes.filter(({ state }) => state !== 'destroyed');
    const vms = await vmRecords(instance.dataDir);
    const processes = (await footprintOf(instance)).vms;
    const owned = vms.flatMap(({ vmId }) => vmId ?? []).sort();
    seen = { living, vms, processes };
    const whole = living.every(({ state }) => state === 'running' || state === 'paused');
    const ids = living.map(({ vm_id }) => vm_id).sort();
    const counts = processes.length === vms.length && vms.length === ids.length + poolSize;
    return whole && counts && JSON.stringify(ids) === JSON.stringify(owned) ? ids : undefined;
  };
  const ids = await until('the ledger and the machine agree', agreed, {
    deadlineMs: SETTLE_MS,
    intervalMs: POLL_MS,
  }).catch((cause: unknown) => {
    throw new Error(`the ledger and the machine differ: ${JSON.stringify(seen, null, 1)}`, {
      cause,
    });
  });
  await Promise.all(
    ids.map((id) => account.client.sandboxes.exec(id, 'true', { timeoutMs: 30_000 })),
  );
  return ids;
}

async function look(instance: InstanceNames): Promise<{ footprint: Footprint; counts: IdleState }> {
  const footprint = await footprintOf(instance);
  return {
    footprint,
    counts: Object.fromEntries(COUNTED.map((kind) => [kind, footprint[kind].length])),
  };
}

async function isEmptyLedger(dataDir: string): Promise<boolean> {
  const { active, countedSandboxes, reservedMemoryMib } = await ledgerUse(dataDir);
  return active.length === 0 && countedSandboxes === 0 && reservedMemoryMib === 0;
}
