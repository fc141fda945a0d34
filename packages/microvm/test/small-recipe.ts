import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const IMAGES = fileURLToPath(new URL('../../../images/', import.meta.url));

/** A minimal image, for tests of the build that do not depend on its contents. */
const SETTINGS = {
  suite: 'trixie',
  packages: ['busybox-static'],
  vcpu: 1,
  memoryMib: 256,
  diskMib: 1024,
  warmUp: [],
};

/** Creates a folder of recipes with one template, `small`. Returns its path. */
export async function smallRecipe(directory: string): Promise<string> {
  const recipes = join(directory, 'recipes');
  await mkdir(join(recipes, 'small/rootfs'), { recursive: true });
  await cp(join(IMAGES, 'kernel'), join(recipes, 'kernel'), { recursive: true });
  await writeFile(join(recipes, 'small/image.json'), JSON.stringify(SETTINGS));
  return recipes;
}
