import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const IMAGES = fileURLToPath(new URL('../../../images/', import.meta.url));

/** A minimal image, for tests of the build that do not depend on its contents. */
const SETTINGS = {
  suite: 'trixie',
  // The initial RAM disk and the agents' user need these.
  packages: ['busybox-static', 'sudo'],
  vcpu: 1,
  memoryMib: 256,
  diskMib: 1024,
  warmUp: [],
};

/** What the recipe `layered` adds to `small`. */
const ADDED = {
  base: 'small',
  packages: ['jq'],
  executables: { query: 'usr/bin/jq' },
  libraries: { 'usr/lib/greeting.so': 'greeting.c' },
  services: { greeter: '/usr/bin/greeter --loud' },
  diskMib: 1280,
};

/** In the place of a compiler, which would be larger than the image. */
const GCC = `#!/bin/sh
for word; do [ "$before" = -o ] && target=$word; before=$word; done
{ echo compiled; cat; } >"$target"
`;

/** Adds the recipe `layered`, which is based on `small`, to a folder of recipes. */
export async function layeredRecipe(recipes: string): Promise<void> {
  await mkdir(join(recipes, 'layered/rootfs/usr/bin'), { recursive: true });
  await writeFile(join(recipes, 'layered/rootfs/usr/bin/greeter'), 'hello\n', { mode: 0o755 });
  await writeFile(join(recipes, 'layered/rootfs/usr/bin/gcc'), GCC, { mode: 0o755 });
  await writeFile(join(recipes, 'layered/greeting.c'), 'int greeting;\n');
  await writeFile(join(recipes, 'layered/image.json'), JSON.stringify(ADDED));
}

/** Creates a folder of recipes with one template, `small`. Returns its path. */
export async function smallRecipe(directory: string): Promise<string> {
  const recipes = join(directory, 'recipes');
  await mkdir(join(recipes, 'small/rootfs'), { recursive: true });
  await cp(join(IMAGES, 'kernel'), join(recipes, 'kernel'), { recursive: true });
  await writeFile(join(recipes, 'small/image.json'), JSON.stringify(SETTINGS));
  return recipes;
}
