import type { Account } from '../support/accounts.ts';
import { until } from '../support/until.ts';
import { ledgerUse } from './database.ts';
import { type Footprint, footprintOf } from './footprint.ts';
import type { InstanceNames } from './instance.ts';
import { vmsOf } from './vms.ts';

const SETTLE_MS = 180_000;
const POLL_MS = 250;

/** What an idle service holds: how many of each kind. */
export type IdleState = Readonly<Record<string, number>>;

/** Kinds that are the same in number whenever the service is idle; the database's connections are not. */
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

/** Waits until the service holds no sandbox and its stocks are full, which two looks in a row agree on. */
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
    { deadlineMs: SETTLE_MS, intervalMs: POLL_MS },
  );
}

/** Waits until the service holds again just what it held when it was idle; else says what there is too much. */
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
    throw new Error(`something is left over or missing: ${found}`, { cause });
  }
}

/**
 * Waits until ledger and machine agree: every sandbox that the ledger calls alive has a VM that runs a
 * command, and every VM is a sandbox's or waits in the pool. Resolves with the ids of the living.
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
    const vms = await vmsOf(instance.dataDir);
    const processes = (await footprintOf(instance)).vms;
    const owned = vms.flatMap(({ vmId }) => vmId ?? []).sort();
    seen = { living, vms, processes };
    const whole = living.every(({ state }) => state === 'running' || state === 'paused');
    const ids = living.map(({ vm_id }) => vm_id).sort();
    const counts = processes.length === vms.length && vms.length === ids.length + poolSize;
    return whole && counts && JSON.stringify(ids) === JSON.stringify(owned) ? ids : undefined;
  };
  const ids = await until('ledger and machine agree', agreed, {
    deadlineMs: SETTLE_MS,
    intervalMs: POLL_MS,
  }).catch((cause: unknown) => {
    throw new Error(`ledger and machine differ: ${JSON.stringify(seen, null, 1)}`, { cause });
  });
  for (const id of ids) await account.client.sandboxes.exec(id, 'true', { timeoutMs: 30_000 });
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
