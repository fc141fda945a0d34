import { appendFile, chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { temporaryDirectory } from '../../test/temporary-directory.ts';
import { readRecipe, recipeNames } from './recipe.ts';

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

test('the folder shared by all images is not a template', async () => {
  await mkdir(join(images.path, 'another'));
  expect((await recipeNames(images.path)).sort()).toEqual(['another', 'standard']);
});

test('rejects an unknown template with unknown_template', async () => {
  await expect(readRecipe('kernel')).rejects.toMatchObject({ code: 'unknown_template' });
});
