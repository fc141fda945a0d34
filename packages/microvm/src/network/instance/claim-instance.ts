import { access, mkdir, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { runEveryStep } from '@svc/service-kit/concurrency';
import { INSTANCE_COUNT } from '../addresses.ts';
import { NetworkError } from '../network-error.ts';
import { clearRunDir } from './clear-run-dir.ts';
import { describeInstance, type Instance } from './instance.ts';
import { endProcesses, hasProcesses } from './instance-processes.ts';
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
 * when its data directory no longer exists. Its VM processes and mounts are removed before it is reused.
 * The caller must be the only service on `dataDir`.
 *
 * @throws NetworkError `instances_exhausted` when 32 data directories have an index
 */
export async function claimInstance(
  dataDir: string,
  registry = MACHINE_REGISTRY,
): Promise<Instance> {
  const { root } = registry;
  const owner = await realpath(dataDir);
  await mkdir(registryDir(root), { recursive: true });
  const index = await withRegistryLock(lockFile(root), () => claimIndex(registry, owner));
  const instance = describeInstance(root, index, owner);
  await mkdir(instance.runDir, { recursive: true, mode: 0o711 });
  return instance;
}

/** Frees the index and removes its run directory, so that another data directory can use them. */
export async function releaseInstance(
  instance: Instance,
  { root } = MACHINE_REGISTRY,
): Promise<void> {
  await withRegistryLock(lockFile(root), async () => {
    const owner = (await readOwners(root)).get(instance.index);
    if (owner !== instance.dataDir) return;
    await clearRunDir(instance.runDir);
    await rm(entryFile(root, instance.index), { force: true });
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
  await mkdir(registryDir(root), { recursive: true });
  await withRegistryLock(lockFile(root), async () => {
    const orphans: Instance[] = [];
    for (const [index, dataDir] of await readOwners(root)) {
      if (!(await exists(dataDir))) orphans.push(describeInstance(root, index, dataDir));
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
  await rm(entryFile(root, orphan.index), { force: true });
}

async function claimIndex(registry: InstanceRegistry, owner: string): Promise<number> {
  const { root } = registry;
  const owners = await readOwners(root);
  for (const [index, dataDir] of owners) {
    if (dataDir === owner) return index;
  }
  for (let index = 0; index < INSTANCE_COUNT; index += 1) {
    if (!(await isFree(registry, index, owners.get(index)))) continue;
    await registry.endProcesses(index);
    await clearRunDir(describeInstance(root, index, owner).runDir);
    await writeFile(entryFile(root, index), owner, { mode: 0o600 });
    return index;
  }
  throw new NetworkError(
    'instances_exhausted',
    `${INSTANCE_COUNT} data directories are in use on this machine; stop one (svc down) first`,
  );
}

/** An unlisted index with processes is not free: its entry was in a registry that has been lost. */
async function isFree(registry: InstanceRegistry, index: number, dataDir?: string) {
  if (dataDir === undefined) return !(await registry.hasProcesses(index));
  return !(await exists(dataDir));
}

async function readOwners(root: string): Promise<Map<number, string>> {
  const owners = new Map<number, string>();
  for (const name of await readdir(registryDir(root))) {
    if (!/^\d+$/.test(name)) continue;
    owners.set(Number(name), await readFile(entryFile(root, Number(name)), 'utf8'));
  }
  return owners;
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    // Only a path that certainly does not exist frees its index. An unreadable mount does not.
    return !(error instanceof Error && 'code' in error && error.code === 'ENOENT');
  }
}

const registryDir = (root: string) => `${root}/instances`;
const entryFile = (root: string, index: number) => `${registryDir(root)}/${index}`;
const lockFile = (root: string) => `${registryDir(root)}/.lock`;
