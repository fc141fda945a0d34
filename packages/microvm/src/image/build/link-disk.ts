import { link } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskImage } from '../../disk-image.ts';
import { rootfsName } from '../image-store.ts';
import type { Recipe } from '../recipe.ts';

/** Name, in the directory of a base, of the file that holds what the recipe itself contributes to the root disk. */
export function ownDisk({ base }: Recipe): string {
  return base === undefined ? 'rootfs.ext4' : 'rootfs.qcow2';
}

/**
 * Links the root disk of a base into another directory, which then does not depend on the base. The top file gets the name
 * of the given id; those below have the names by which the files above refer to them. Returns the names.
 */
export async function linkDisk(
  recipe: Recipe,
  id: string,
  baseDirectory: string,
  directory: string,
): Promise<DiskImage> {
  const below = namesBelow(recipe);
  for (const name of below) await link(join(baseDirectory, name), join(directory, name));
  const top = rootfsName(recipe, id);
  await link(join(baseDirectory, ownDisk(recipe)), join(directory, top));
  return [...below, top];
}

function namesBelow({ base }: Recipe): DiskImage {
  return base === undefined ? [] : [...namesBelow(base), rootfsName(base, base.baseId)];
}
