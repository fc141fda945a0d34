import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Mutex } from '@svc/service-kit/concurrency';
import { makeGroup, removeGroup, removeTree } from './group-files.ts';
import { OwnerDemand } from './owner-demand.ts';
import { wantedMs } from './wanted-time.ts';

/** Groups of owners begin with this, and those of VMs do not. */
const OWNER_PREFIX = 'owner-';
/** The errors of files of a group that has been removed, before and after they were opened. */
const GONE = ['ENOENT', 'ENODEV'];

export interface OwnerGroupsOptions {
  /** The group of the service. */
  readonly path: string;
  /** The control files of an owner's group, which are the same for all. */
  readonly owner: Readonly<Record<string, string | number>>;
  /** The files that limit a VM, and move with it. */
  readonly limits: readonly string[];
  /** The file with the weight of a group, and the full weight of an owner. */
  readonly weight: { readonly file: string; readonly full: number };
}

/**
 * The groups of VMs in one hierarchy: in the group of the service, or in that of their owner, so that the VMs of each owner
 * together get an equal share of the processor, however many they are. The group of an owner exists as long as it has VMs.
 */
export class OwnerGroups {
  readonly #options: OwnerGroupsOptions;
  /** By VM. */
  readonly #owners: Map<string, string>;
  readonly #changes = new Mutex();
  readonly #demand = new OwnerDemand();

  private constructor(options: OwnerGroupsOptions, owners: Map<string, string>) {
    this.#options = options;
    this.#owners = owners;
  }

  /** Finds the groups that an earlier process left, and settles what it did not finish: a move, or a removal. */
  static async open(options: OwnerGroupsOptions): Promise<OwnerGroups> {
    const owners = new Map<string, string>();
    for (const name of await groupsIn(options.path)) {
      if (!name.startsWith(OWNER_PREFIX)) continue;
      const owner = decodeURIComponent(name.slice(OWNER_PREFIX.length));
      const group = join(options.path, name);
      for (const id of await groupsIn(group)) {
        const before = join(options.path, id);
        // While a VM moves it has two groups, and its process is in one of them.
        const isMoved = !(await isInUse(before));
        await removeGroup(isMoved ? before : join(group, id));
        if (isMoved) owners.set(id, owner);
      }
      if ((await groupsIn(group)).length === 0) await removeGroup(group);
    }
    return new OwnerGroups(options, owners);
  }

  /** Makes the group of a VM, with its control files. Returns the path. */
  async make(
    id: string,
    owner: string | undefined,
    files: Readonly<Record<string, string | number>>,
  ): Promise<string> {
    return await this.#changes.run(async () => {
      const path = this.#pathOf(id, owner);
      if (owner !== undefined) {
        await makeGroup(this.#groupOf(owner), this.#options.owner);
        this.#owners.set(id, owner);
      }
      await makeGroup(path, files);
      return path;
    });
  }

  /** Moves a VM, with its limits, to the group of its owner. Does nothing when it is there, and when it has ended. */
  async move(id: string, owner: string, pid: number): Promise<void> {
    await this.#changes.run(async () => {
      const before = this.#owners.get(id);
      if (before === owner) return;
      const from = this.#pathOf(id, before);
      const limits = await readFiles(from, this.#options.limits);
      if (limits === undefined) return;
      await makeGroup(this.#groupOf(owner), this.#options.owner);
      const to = this.#pathOf(id, owner);
      try {
        await makeGroup(to, limits);
        await writeFile(join(to, 'cgroup.procs'), String(pid));
      } catch (error) {
        await removeGroup(to);
        await this.#removeUnused(owner);
        if ((error as NodeJS.ErrnoException).code === 'ESRCH') return;
        throw error;
      }
      this.#owners.set(id, owner);
      await removeGroup(from);
      await this.#removeUnused(before);
    });
  }

  /** Gives each owner its weight by what its VMs have wanted since the last time. See {@link OwnerDemand}. */
  async balance(): Promise<void> {
    const wanted = [...this.#owners].map(async ([id, owner]) => {
      const files = await readFiles(this.#pathOf(id, owner), ['cgroup.procs']);
      const pids = files?.['cgroup.procs']?.split('\n').filter(Boolean) ?? [];
      const times = await Promise.all(pids.map(wantedMs));
      return [id, { owner, wantedMs: times.reduce((sum, time) => sum + time, 0) }] as const;
    });
    this.#demand.note(new Map(await Promise.all(wanted)), performance.now());
    const { file, full } = this.#options.weight;
    for (const [owner, share] of this.#demand.shares()) {
      await writeIfThere(join(this.#groupOf(owner), file), String(Math.round(full * share)));
    }
  }

  /** Removes the group of a VM, whose processes must have ended. Idempotent. */
  async remove(id: string): Promise<void> {
    await this.#changes.run(async () => {
      const owner = this.#owners.get(id);
      await removeGroup(this.#pathOf(id, owner));
      this.#owners.delete(id);
      await this.#removeUnused(owner);
    });
  }

  /** Removes every group, that of the service included. */
  async close(): Promise<void> {
    await this.#changes.run(() => removeTree(this.#options.path));
  }

  async #removeUnused(owner: string | undefined): Promise<void> {
    if (owner === undefined || new Set(this.#owners.values()).has(owner)) return;
    await removeGroup(this.#groupOf(owner));
  }

  #pathOf(id: string, owner: string | undefined): string {
    return join(owner === undefined ? this.#options.path : this.#groupOf(owner), id);
  }

  #groupOf(owner: string): string {
    return join(this.#options.path, `${OWNER_PREFIX}${encodeURIComponent(owner)}`);
  }
}

/** Undefined when there is no such group. */
async function readFiles(
  path: string,
  names: readonly string[],
): Promise<Record<string, string> | undefined> {
  try {
    const files = names.map(async (name) => {
      const value = await readFile(join(path, name), 'utf8');
      return [name, value.trim()] as const;
    });
    return Object.fromEntries(await Promise.all(files));
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (GONE.includes(code)) return undefined;
    throw error;
  }
}

async function writeIfThere(path: string, text: string): Promise<void> {
  try {
    // Without a flag to create it: the group may have been removed in the meantime.
    await writeFile(path, text, { flag: 'r+' });
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!GONE.includes(code)) throw error;
  }
}

async function groupsIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Whether there is such a group, with processes. */
async function isInUse(path: string): Promise<boolean> {
  const files = await readFiles(path, ['cgroup.procs']);
  return files !== undefined && files['cgroup.procs'] !== '';
}
