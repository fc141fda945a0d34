import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskImage } from '../disk-image.ts';
import type { AgentBuild } from './agent-builds.ts';
import type { Image } from './image.ts';
import type { RecipeSettings } from './recipe.ts';

/** The contents of `image.json` of a built image. */
interface ImageFile extends RecipeSettings {
  readonly template: string;
  readonly id: string;
  /** Absent from images that an earlier version of this package built. */
  readonly builds?: readonly AgentBuild[];
  /** The file names of the root disk, see `DiskImage`. Absent if there is only one. */
  readonly disk?: DiskImage;
}

/** Directory of one version of an image. It exists only after a complete build. */
export function imageDirectory(imageDir: string, template: string, id: string): string {
  return join(imageDir, template, id);
}

/** Name of the file of a root disk that holds the contents of one recipe. With a base, it holds only what differs. */
export function rootfsName({ template, base }: DiskOwner, id: string): string {
  return `${template}-${id}.${base === undefined ? 'ext4' : 'qcow2'}`;
}

/** Whether a file of a template's image or base is part of the root disk of another template, on which it is based. */
export function isOfBase(name: string, template: string): boolean {
  return /-[0-9a-f]+\.(ext4|qcow2)$/.test(name) && !name.startsWith(`${template}-`);
}

interface DiskOwner {
  readonly template: string;
  readonly base: unknown;
}

/** Reads an image. Undefined when this version has not been built. */
export async function readImage(
  imageDir: string,
  template: string,
  id: string,
): Promise<Image | undefined> {
  const directory = imageDirectory(imageDir, template, id);
  const file = await readImageFile(directory);
  if (file === undefined) return undefined;
  const disk = file.disk ?? [`${template}-${id}.ext4`];
  return {
    template,
    id,
    vcpu: file.vcpu,
    memoryMib: file.memoryMib,
    diskMib: file.diskMib,
    builds: file.builds ?? [],
    warmUp: file.warmUp,
    idleWarmUp: file.idleWarmUp ?? [],
    rootfs: disk.at(-1) ?? '',
    directory,
    disk: disk.map((name) => join(directory, name)),
    kernelPath: join(directory, 'vmlinuz'),
    initrdPath: join(directory, 'initrd'),
  };
}

/** Every built image of every template. */
export async function readImages(imageDir: string): Promise<Image[]> {
  const images: Image[] = [];
  for (const template of await namesIn(imageDir)) {
    for (const id of await namesIn(join(imageDir, template))) {
      const image = await readImage(imageDir, template, id);
      if (image !== undefined) images.push(image);
    }
  }
  return images;
}

async function readImageFile(directory: string): Promise<ImageFile | undefined> {
  try {
    return JSON.parse(await readFile(join(directory, 'image.json'), 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The directories in a directory, without hidden ones. None if it does not exist. */
export async function namesIn(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
      .map(({ name }) => name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
