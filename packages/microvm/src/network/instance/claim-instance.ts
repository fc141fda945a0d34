import { access, mkdir, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { INSTANCE_COUNT } from '../addresses.ts';
import { NetworkError } from '../network-error.ts';
import { detachMounts } from './detach-mounts.ts';
import { describeInstance, type Instance } from './instance.ts';
import { withRegistryLock } from './registry-lock.ts';

const ROOT = '/run/svc';

/**
 * Gives a data directory its place among the services of this machine: the index it already
 * holds, or the lowest that is free. An index whose data directory no longer exists is free.
 * The caller must be the only service on `dataDir`.
 *
 * @throws NetworkError `instances_exhausted` when 32 data directories hold one.
 */
export async function claimInstance(dataDir: string, root = ROOT): Promise<Instance> {
  const owner = await realpath(dataDir);
  await mkdir(registryDir(root), { recursive: true });
  const index = await withRegistryLock(lockFile(root), () => claimIndex(root, owner));
  const instance = describeInstance(root, index, owner);
  await mkdir(instance.runDir, { recursive: true, mode: 0o711 });
  return instance;
}

/** Frees the index and removes its run directory, so that another data directory may have them. */
export async function releaseInstance(instance: Instance, root = ROOT): Promise<void> {
  await withRegistryLock(lockFile(root), async () => {
    const owner = (await readOwners(root)).get(instance.index);
    if (owner !== instance.dataDir) return;
    await detachMounts(instance.runDir);
    await rm(instance.runDir, { recursive: true, force: true });
    await rm(entryFile(root, instance.index), { force: true });
  });
}

async function claimIndex(root: string, owner: string): Promise<number> {
  const owners = await readOwners(root);
  for (const [index, dataDir] of owners) {
    if (dataDir === owner) return index;
  }
  for (let index = 0; index < INSTANCE_COUNT; index += 1) {
    const dataDir = owners.get(index);
    if (dataDir !== undefined && (await exists(dataDir))) continue;
    await detachMounts(`${root}/${index}`);
    await rm(`${root}/${index}`, { recursive: true, force: true });
    await writeFile(entryFile(root, index), owner, { mode: 0o600 });
    return index;
  }
  throw new NetworkError(
    'instances_exhausted',
    `${INSTANCE_COUNT} data directories are in use on this machine; stop one (svc down) first`,
  );
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
    // Only a path that is surely gone frees its index: an unreadable mount does not.
    return !(error instanceof Error && 'code' in error && error.code === 'ENOENT');
  }
}

const registryDir = (root: string) => `${root}/instances`;
const entryFile = (root: string, index: number) => `${registryDir(root)}/${index}`;
const lockFile = (root: string) => `${registryDir(root)}/.lock`;
