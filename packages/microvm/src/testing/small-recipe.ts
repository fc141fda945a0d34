import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const OURS = fileURLToPath(new URL('../../../../images/', import.meta.url));

/** The smallest image there can be, for tests of building: what is in it is not looked at. */
const SETTINGS = {
  suite: 'trixie',
  packages: ['busybox-static'],
  vcpu: 1,
  memoryMib: 256,
  diskMib: 1024,
  warmUp: [],
};

/** Makes a folder of recipes with one template, `small`. Returns its path. */
export async function smallRecipe(directory: string): Promise<string> {
  const recipes = join(directory, 'recipes');
  await mkdir(join(recipes, 'small/rootfs'), { recursive: true });
  await cp(join(OURS, 'kernel'), join(recipes, 'kernel'), { recursive: true });
  await writeFile(join(recipes, 'small/image.json'), JSON.stringify(SETTINGS));
  return recipes;
}
