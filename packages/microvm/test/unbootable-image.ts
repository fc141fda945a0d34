import { randomBytes } from 'node:crypto';
import { mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readRecipe } from '../src/image/recipe.ts';

const MIB = 1024 * 1024;
/** Where the disk of the image has data, in bytes. The rest are holes. */
export const DISK_DATA: readonly (readonly [offset: number, length: number])[] = [
  [0, MIB],
  [20 * MIB, 5 * MIB],
  [40 * MIB - 4096, 4096],
];
export const DISK_BYTES = 40 * MIB;

/** Stores files with the names of a recipe's image, which no VM boots from. Returns the id of the image and its directory. */
export async function unbootableImage(
  imageDir: string,
  template: string,
  recipes: string,
): Promise<{ readonly id: string; readonly directory: string; readonly disk: string }> {
  const { id } = await readRecipe(template, recipes);
  const directory = join(imageDir, template, id);
  await mkdir(directory, { recursive: true });
  const disk = `${template}-${id}.ext4`;
  const description = { template, id, vcpu: 1, memoryMib: 256, diskMib: 100, warmUp: [] };
  await writeFile(join(directory, 'image.json'), JSON.stringify({ ...description, disk: [disk] }));
  await writeFile(join(directory, 'vmlinuz'), randomBytes(100_000));
  await writeFile(join(directory, 'initrd'), randomBytes(1000));
  const file = await open(join(directory, disk), 'w');
  await file.truncate(DISK_BYTES);
  for (const [offset, length] of DISK_DATA)
    await file.write(randomBytes(length), 0, length, offset);
  await file.close();
  return { id, directory, disk };
}
