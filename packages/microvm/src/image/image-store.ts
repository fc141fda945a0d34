import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentBuild } from './agent-builds.ts';
import type { Image } from './image.ts';
import type { RecipeSettings } from './recipe.ts';

/** The contents of `image.json` of a built image. */
interface ImageFile extends RecipeSettings {
  readonly template: string;
  readonly id: string;
  /** Absent from images that an earlier version of this package built. */
  readonly builds?: readonly AgentBuild[];
}

/** Directory of one version of an image. It exists only after a complete build. */
export function imageDirectory(imageDir: string, template: string, id: string): string {
  return join(imageDir, template, id);
}

export function rootfsName(template: string, id: string): string {
  return `${template}-${id}.ext4`;
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
  const rootfs = rootfsName(template, id);
  return {
    template,
    id,
    vcpu: file.vcpu,
    memoryMib: file.memoryMib,
    diskMib: file.diskMib,
    builds: file.builds ?? [],
    warmUp: file.warmUp,
    rootfs,
    directory,
    rootfsPath: join(directory, rootfs),
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
