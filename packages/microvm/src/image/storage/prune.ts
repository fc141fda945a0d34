import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { FileLockedError } from '@svc/service-kit/process';
import { underBuildLock } from '../build/build-lock.ts';
import { openWorkDirectory } from '../build/work-directory.ts';
import { readRecipe, recipeNames } from '../recipe.ts';
import { openFiles } from './open-files.ts';
import { listStored, type StoredItem } from './stored-item.ts';

/**
 * What was used more recently is never pruned. A snapshot is in use for the seconds that a restore takes, an image and a
 * base during a build, and for as long as a service runs, which marks its images with every report.
 */
const IN_USE_MS = { snapshot: 2 * 60_000, image: 60 * 60_000, base: 60 * 60_000 };

export interface PruneOptions {
  readonly imageDir: string;
  /** Allocated bytes that may remain. 0 removes everything that can be removed. */
  readonly budgetBytes: number;
  /** The folder of recipes, whose images and bases are kept. Default: the repository's `images`. */
  readonly recipes?: string;
}

/**
 * Removes the least recently used snapshots, outdated images and unused bases of an image directory until the rest fits
 * into a budget, or nothing else can be removed. Never removes what the current recipes need, a base of an image that
 * stays, or anything in use, also by other services and by VMs that no service watches. Returns what was removed.
 */
export async function pruneImages(options: PruneOptions): Promise<StoredItem[]> {
  const { imageDir, budgetBytes } = options;
  const removed: StoredItem[] = [];
  const passed = new Set<StoredItem['directory']>();
  let kept: Kept | undefined;
  for (;;) {
    const { items, bytes } = await listStored(imageDir);
    if (bytes <= budgetBytes) return removed;
    kept ??= { current: await currentItems(options), open: await openFiles() };
    const { current, open } = kept;
    const [oldest] = items
      .filter((item) => !current.has(nameOf(item)) && !passed.has(item.directory))
      .filter((item) => !isInUse(item, items, open) && !isBaseOf(item, items))
      .sort((one, other) => one.lastUsedAt.getTime() - other.lastUsedAt.getTime());
    if (oldest === undefined) return removed;
    passed.add(oldest.directory);
    if (await removeStored(imageDir, oldest)) removed.push(oldest);
  }
}

/** What stays, as found before the first removal. */
interface Kept {
  readonly current: ReadonlySet<string>;
  readonly open: ReadonlySet<string>;
}

/** Whether an item, or a snapshot in it, was used recently or is a snapshot from which a VM runs. `open`: files that are open */
export function isInUse(
  item: StoredItem,
  items: readonly StoredItem[],
  open: ReadonlySet<string>,
): boolean {
  const { kind, directory, inodes, lastUsedAt } = item;
  if (Date.now() - lastUsedAt.getTime() <= IN_USE_MS[kind]) return true;
  if (kind === 'snapshot') return [...inodes].some((inode) => open.has(inode));
  const inside = items.filter((other) => other.directory.startsWith(`${directory}/`));
  return inside.some((snapshot) => isInUse(snapshot, items, open));
}

/** Whether the root disk of another item contains a base, which so takes no space of its own. */
function isBaseOf({ ownDisk, directory }: StoredItem, items: readonly StoredItem[]): boolean {
  if (ownDisk === undefined) return false;
  return items.some((item) => item.directory !== directory && item.inodes.has(ownDisk));
}

/** Removes an item at once, as seen by others. False if it is being built, or is gone. */
export async function removeStored(imageDir: string, item: StoredItem): Promise<boolean> {
  try {
    return await underBuildLock(imageDir, item.build, async () => {
      // The remains of an interrupted removal are found like those of an interrupted build.
      const work = await openWorkDirectory(imageDir, item.build);
      try {
        await rename(item.directory, join(work, 'removed'));
        return true;
      } finally {
        await rm(work, { recursive: true, force: true });
      }
    });
  } catch (error) {
    const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (isGone || error instanceof FileLockedError) return false;
    throw error;
  }
}

/** The images of the recipes, the snapshots that their pools restore, and their bases. */
async function currentItems({ recipes }: PruneOptions): Promise<Set<string>> {
  const current = new Set<string>();
  for (const template of await recipeNames(recipes)) {
    const { id, baseId, vcpu, memoryMib } = await readRecipe(template, recipes);
    current.add(nameOf({ kind: 'image', template, name: id }));
    current.add(nameOf({ kind: 'snapshot', template, name: `${id}-${vcpu}x${memoryMib}` }));
    current.add(nameOf({ kind: 'base', template, name: baseId }));
  }
  return current;
}

function nameOf({ kind, template, name }: Pick<StoredItem, 'kind' | 'template' | 'name'>): string {
  return `${kind} ${template} ${name}`;
}
