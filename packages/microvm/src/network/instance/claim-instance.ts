import { mkdir, realpath } from 'node:fs/promises';
import { runEveryStep } from '@svc/service-kit/concurrency';
import { INSTANCE_COUNT } from '../addresses.ts';
import { NetworkError } from '../network-error.ts';
import { clearRunDir } from './clear-run-dir.ts';
import { ensureDataDirectoryId } from './data-directory-id.ts';
import { describeInstance, type Instance } from './instance.ts';
import { endProcesses, hasProcesses } from './instance-processes.ts';
import {
  entriesDir,
  isOrphan,
  type OwnEntry,
  type RegistryEntry,
  readEntries,
  removeEntry,
  writeEntry,
  writeId,
} from './registry-entries.ts';
import { withRegistryLock } from './registry-lock.ts';

/** The directory that lists the services of a machine, and how to find and end the processes of a deleted service. */
export interface InstanceRegistry {
  readonly root: string;
  hasProcesses(index: number): Promise<boolean>;
  endProcesses(index: number): Promise<void>;
}

/** The only registry of this machine. A second one would assign the same users and addresses again. */
const MACHINE_REGISTRY: InstanceRegistry = { root: '/run/svc', hasProcesses, endProcesses };

/** A step of removing an instance whose data directory no longer exists. Its VM processes have ended. */
export interface OrphanStep {
  readonly name: string;
  readonly run: (instance: Instance) => Promise<void>;
}

/**
 * Assigns an instance index to a data directory: the one it already has, or the lowest that is free. An index is free
 * when its data directory no longer exists, even if there is another one at its path. Its VM processes and mounts are
 * removed before it is reused. The caller must be the only service on `dataDir`.
 *
 * @throws NetworkError `instances_exhausted` when 32 data directories have an index
 */
export async function claimInstance(
  dataDir: string,
  registry = MACHINE_REGISTRY,
): Promise<Instance> {
  const { root } = registry;
  const owner = { dataDir: await realpath(dataDir), id: await ensureDataDirectoryId(dataDir) };
  await mkdir(entriesDir(root), { recursive: true });
  const index = await withRegistryLock(lockFile(root), () => claimIndex(registry, owner));
  const instance = describeInstance(root, index, owner.dataDir);
  await mkdir(instance.runDir, { recursive: true, mode: 0o711 });
  return instance;
}

/** Frees the index and removes its run directory, so that another data directory can use them. */
export async function releaseInstance(
  instance: Instance,
  { root } = MACHINE_REGISTRY,
): Promise<void> {
  await withRegistryLock(lockFile(root), async () => {
    const entry = (await readEntries(root)).get(instance.index);
    if (entry?.dataDir !== instance.dataDir) return;
    await clearRunDir(instance.runDir);
    await removeEntry(root, instance.index);
  });
}

/**
 * Frees the indexes whose data directory no longer exists: ends their VM processes, takes `steps`, and removes the run
 * directory. An index whose steps fail stays assigned, so that a later call tries again.
 *
 * @throws CleanupError with the failures of all indexes
 */
export async function releaseOrphans(
  steps: readonly OrphanStep[],
  registry = MACHINE_REGISTRY,
): Promise<void> {
  const { root } = registry;
  await mkdir(entriesDir(root), { recursive: true });
  await withRegistryLock(lockFile(root), async () => {
    const orphans: Instance[] = [];
    for (const [index, entry] of await readEntries(root)) {
      if (await isOrphan(entry)) orphans.push(describeInstance(root, index, entry.dataDir));
    }
    await runEveryStep(
      orphans.map((orphan) => ({
        name: `remove the remains of ${orphan.dataDir}`,
        run: () => removeOrphan(orphan, steps, registry),
      })),
    );
  });
}

async function removeOrphan(
  orphan: Instance,
  steps: readonly OrphanStep[],
  { root, endProcesses }: InstanceRegistry,
): Promise<void> {
  // First, because everything else is in use while they run.
  await endProcesses(orphan.index);
  await runEveryStep([
    ...steps.map(({ name, run }) => ({ name, run: () => run(orphan) })),
    { name: 'clear the run directory', run: () => clearRunDir(orphan.runDir) },
  ]);
  await removeEntry(root, orphan.index);
}

async function claimIndex(registry: InstanceRegistry, owner: OwnEntry): Promise<number> {
  const { root } = registry;
  const entries = await readEntries(root);
  for (const [index, entry] of entries) {
    if (entry.dataDir !== owner.dataDir || (await isOrphan(entry))) continue;
    if (entry.id === undefined) await writeId(root, index, owner);
    return index;
  }
  for (let index = 0; index < INSTANCE_COUNT; index += 1) {
    if (!(await isFree(registry, index, entries.get(index)))) continue;
    await registry.endProcesses(index);
    await clearRunDir(describeInstance(root, index, owner.dataDir).runDir);
    await writeEntry(root, index, owner);
    return index;
  }
  throw new NetworkError(
    'instances_exhausted',
    `${INSTANCE_COUNT} data directories are in use on this machine; stop one (svc down) first`,
  );
}

/** An unlisted index with processes is not free: its entry was in a registry that has been lost. */
async function isFree(registry: InstanceRegistry, index: number, entry?: RegistryEntry) {
  if (entry === undefined) return !(await registry.hasProcesses(index));
  return isOrphan(entry);
}

const lockFile = (root: string) => `${entriesDir(root)}/.lock`;
