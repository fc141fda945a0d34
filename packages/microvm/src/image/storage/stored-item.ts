import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { allocatedBytes } from '../../disk-space.ts';
import { isOfBase, namesIn } from '../image-store.ts';
import { inodeOf } from './open-files.ts';

/** Something in an image directory that can be removed and built again. */
export interface StoredItem {
  readonly kind: 'base' | 'image' | 'snapshot';
  readonly template: string;
  /** Of an image or a base its id; of a snapshot `<id of its image>-<CPUs>x<MiB>`. */
  readonly name: string;
  readonly directory: string;
  /** The lock that its build holds. */
  readonly build: string;
  /** Allocated bytes, without those of an image's snapshots. A base and its images share most of theirs. */
  readonly bytes: number;
  /** Those of `bytes` that belong to the root disks of other templates, on which this one is based. */
  readonly baseBytes: number;
  readonly lastUsedAt: Date;
  /** Its files, see {@link inodeOf}. */
  readonly inodes: ReadonlySet<string>;
  /** Of a base, the file with what it contributes to the root disks of images. */
  readonly ownDisk: string | undefined;
}

export interface StoredItems {
  readonly items: readonly StoredItem[];
  /** Allocated bytes of all items; what several share counts once. */
  readonly bytes: number;
}

/** Lists the images, snapshots and bases of an image directory. */
export async function listStored(imageDir: string): Promise<StoredItems> {
  const counted = new Map<string, number>();
  const items: StoredItem[] = [];
  const add = async (
    item: Pick<StoredItem, 'kind' | 'template' | 'name' | 'directory' | 'build'>,
  ): Promise<void> => {
    const files = await filesOf(item.directory, item.kind === 'image' ? ['snapshots'] : []);
    const info = await statOf(item.directory);
    if (info === undefined) return;
    for (const { inode, bytes } of files) counted.set(inode, bytes);
    const below = files.filter(({ name }) => isOfBase(name, item.template));
    items.push({
      ...item,
      bytes: sum(files.map(({ bytes }) => bytes)),
      baseBytes: sum(below.map(({ bytes }) => bytes)),
      lastUsedAt: info.mtime,
      inodes: new Set(files.map(({ inode }) => inode)),
      ownDisk: files.find(({ name }) => item.kind === 'base' && name.startsWith('rootfs.'))?.inode,
    });
  };
  for (const template of await namesIn(imageDir)) {
    for (const name of await namesIn(join(imageDir, template))) {
      const directory = join(imageDir, template, name);
      await add({ kind: 'image', template, name, directory, build: `${template}-${name}` });
      const snapshots = join(directory, 'snapshots');
      for (const snapshot of await namesIn(snapshots)) {
        const shaped = `${name}-${snapshot.slice(snapshot.lastIndexOf('-') + 1)}`;
        const place = { template, name: shaped, directory: join(snapshots, snapshot) };
        await add({ kind: 'snapshot', ...place, build: `${template}-${shaped}` });
      }
    }
  }
  const bases = join(imageDir, '.bases');
  for (const base of await namesIn(bases)) {
    const end = base.lastIndexOf('-');
    const place = { template: base.slice(0, end), name: base.slice(end + 1) };
    await add({ kind: 'base', ...place, directory: join(bases, base), build: `${base}-base` });
  }
  return { items, bytes: sum([...counted.values()]) };
}

interface StoredFile {
  readonly name: string;
  readonly inode: string;
  readonly bytes: number;
}

/** The files below a directory, each once. Files that disappear meanwhile are left out. */
async function filesOf(directory: string, except: readonly string[]): Promise<StoredFile[]> {
  const files = new Map<string, StoredFile>();
  const skipped = except.map((name) => join(directory, name));
  for (const entry of await entriesBelow(directory)) {
    const path = join(entry.parentPath, entry.name);
    if (skipped.some((prefix) => path === prefix || path.startsWith(`${prefix}/`))) continue;
    const info = entry.isFile() ? await statOf(path) : undefined;
    if (info === undefined) continue;
    const inode = inodeOf(info);
    files.set(inode, { name: entry.name, inode, bytes: allocatedBytes(info) });
  }
  return [...files.values()];
}

async function entriesBelow(directory: string) {
  try {
    return await readdir(directory, { recursive: true, withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

async function statOf(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
