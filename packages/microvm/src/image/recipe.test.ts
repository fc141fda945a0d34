import { appendFile, chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../../test/temporary-directory.ts';
import { readRecipe, recipeNames } from './recipe.ts';

/** A small program of this repository. */
const ENTRY = 'packages/contract/src/ids.ts';
const OURS = fileURLToPath(new URL('../../../../images/', import.meta.url));

let images: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeEach(async () => {
  images = await temporaryDirectory();
  await cp(OURS, images.path, { recursive: true });
});
afterEach(() => images.remove());

test('a copy of a recipe has the same id', async () => {
  expect((await readRecipe('standard', images.path)).id).toBe((await readRecipe('standard')).id);
});

test.each([
  ['a package', () => appendFile(join(images.path, 'standard/image.json'), ' ')],
  ['a file of the image', () => appendFile(join(images.path, 'standard/rootfs/etc/inittab'), '#')],
  ['a new file', () => writeFile(join(images.path, 'standard/rootfs/etc/motd'), 'hello')],
  ['a file mode', () => chmod(join(images.path, 'standard/rootfs/etc/inittab'), 0o755)],
  [
    'the source of a library',
    () => appendFile(join(images.path, 'standard/libraries/trees.c'), ' '),
  ],
  ['the kernel', () => appendFile(join(images.path, 'kernel/init'), '#')],
])('changing %s changes the id', async (_what, change) => {
  const before = await readRecipe('standard', images.path);
  await change();
  expect((await readRecipe('standard', images.path)).id).not.toBe(before.id);
});

test('the contents of bundled programs are part of the id', async () => {
  const { bundles, id } = await readRecipe('standard', images.path);
  expect([...bundles.keys()]).toEqual(['agent-runtime']);
  expect(bundles.get('agent-runtime')).not.toContain(
    fileURLToPath(new URL('../../../..', import.meta.url)),
  );
  const file = join(images.path, 'standard/image.json');
  const { programs: _left, agents: _too, ...settings } = JSON.parse(await readFile(file, 'utf8'));
  await writeFile(file, JSON.stringify({ ...settings, programs: {} }));
  const without = await readRecipe('standard', images.path);
  await writeFile(
    file,
    JSON.stringify({ ...settings, programs: { x: 'packages/contract/src/ids.ts' } }),
  );
  const other = await readRecipe('standard', images.path);
  expect(new Set([id, without.id, other.id]).size).toBe(3);
  expect(other.bundles.get('x')?.includes('function makeId')).toBe(true);
});

test('names the agents in the versions of the lock file and of this repository', async () => {
  const { builds } = await readRecipe('standard', images.path);
  const { version: deictic } = await json(join(OURS, '../apps/guest/package.json'));
  const { dependencies } = await json(join(OURS, 'standard/npm/package.json'));
  expect(builds).toEqual([
    { kind: 'deictic', version: deictic },
    { kind: 'claude-code', version: dependencies['@anthropic-ai/claude-code-linux-x64'] },
    { kind: 'codex', version: expect.stringMatching(/^\d+\.\d+\.\d+$/) },
  ]);
  const lock = join(images.path, 'standard/npm/package-lock.json');
  const locked = await readFile(lock, 'utf8');
  await writeFile(lock, locked.replaceAll(String(builds[2]?.version), '9.9.9'));
  const [, , codex] = (await readRecipe('standard', images.path)).builds;
  expect(codex).toEqual({ kind: 'codex', version: '9.9.9' });
});

test('rejects an agent that the lock file does not have', async () => {
  const file = join(images.path, 'standard/image.json');
  await writeFile(file, JSON.stringify({ ...(await json(file)), agents: { codex: 'no-package' } }));
  await expect(readRecipe('standard', images.path)).rejects.toThrow('no version of codex');
});

async function json(path: string) {
  return JSON.parse(await readFile(path, 'utf8'));
}

test('every folder with a recipe is a template', async () => {
  for (const name of ['another', 'empty']) await mkdir(join(images.path, name));
  await writeFile(join(images.path, 'another', 'image.json'), '{}');
  const names = await recipeNames(images.path);
  expect(names).toEqual(expect.arrayContaining(['another', 'standard']));
  expect(names).not.toContain('empty');
  expect(names).not.toContain('kernel');
});

test.each(await recipeNames())('the recipe of %s can be read', async (template) => {
  const { base, suite, warmUp } = await readRecipe(template);
  expect(suite).toBe('trixie');
  if (base !== undefined) expect(warmUp.slice(0, base.warmUp.length)).toEqual(base.warmUp);
});

describe('a recipe with a base', () => {
  async function add(name: string, settings: object): Promise<void> {
    await mkdir(join(images.path, name), { recursive: true });
    await writeFile(join(images.path, name, 'image.json'), JSON.stringify(settings));
  }

  test('adds to it', async () => {
    await add('more', {
      base: 'standard',
      packages: ['hello'],
      memoryMib: 1024,
      warmUp: ['hello'],
    });
    await add('most', { base: 'more', agents: { other: 'main' }, programs: { main: ENTRY } });
    const standard = await readRecipe('standard', images.path);
    const more = await readRecipe('more', images.path);
    const { vcpu, diskMib, suite, bundles, builds } = standard;
    expect(more).toMatchObject({ vcpu, diskMib, suite, bundles, builds, memoryMib: 1024 });
    expect(more.base?.id).toBe(standard.id);
    expect(more.packages).toEqual(['hello']);
    expect(more.npmFiles).toBeUndefined();
    expect(more.warmUp).toEqual([...standard.warmUp, 'hello']);
    const most = await readRecipe('most', images.path);
    expect(most).toMatchObject({ memoryMib: 1024, packages: [], warmUp: more.warmUp });
    expect([...most.bundles.keys()]).toEqual(['agent-runtime', 'main']);
    expect(most.builds.map(({ kind }) => kind)).toEqual([
      ...standard.builds.map(({ kind }) => kind),
      'other',
    ]);
  });

  test('has an id that changes with the base, but not the other way round', async () => {
    await add('more', { base: 'standard' });
    const [standard, more] = await readBoth();
    await appendFile(join(images.path, 'more/image.json'), ' ');
    const [sameStandard, changedMore] = await readBoth();
    expect([sameStandard.id, sameStandard.baseId]).toEqual([standard.id, standard.baseId]);
    expect(changedMore.baseId).not.toBe(more.baseId);
    await appendFile(join(images.path, 'standard/rootfs/etc/inittab'), '#');
    const [, above] = await readBoth();
    expect(above.baseId).not.toBe(changedMore.baseId);
    expect(above.id).not.toBe(changedMore.id);
  });

  test('is refused if the base does not exist or is based on it', async () => {
    await add('more', { base: 'nowhere' });
    await expect(readRecipe('more', images.path)).rejects.toMatchObject({
      code: 'unknown_template',
    });
    await add('more', { base: 'most' });
    await add('most', { base: 'more' });
    await expect(readRecipe('most', images.path)).rejects.toThrow('most, more, most');
  });

  async function readBoth() {
    return [
      await readRecipe('standard', images.path),
      await readRecipe('more', images.path),
    ] as const;
  }
});

test('rejects an unknown template with unknown_template', async () => {
  await expect(readRecipe('kernel')).rejects.toMatchObject({ code: 'unknown_template' });
});
