import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { smallRecipe } from '../testing/small-recipe.ts';
import { temporaryDirectory } from '../testing/temporary-directory.ts';
import { buildImage } from './build-image.ts';
import { listImages } from './image-info.ts';
import { readRecipe } from './recipe.ts';

const INTERRUPT_MS = 300_000;
/** The packages are being unpacked, or are already: of lines that come together only the last is told. */
const UNPACKING = /extracting archives|installing/;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let imageDir: string;
let recipes: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  imageDir = join(directory.path, 'images');
  recipes = await smallRecipe(directory.path);
});
afterEach(() => directory.remove());

/** Builds until the packages are being unpacked, then gives up. */
async function interruptedBuild(): Promise<void> {
  const abort = new AbortController();
  const onProgress = (line: string) => {
    if (UNPACKING.test(line)) abort.abort(new Error('interrupted'));
  };
  const build = buildImage({ template: 'small', imageDir, recipes, onProgress }, abort.signal);
  await expect(build).rejects.toThrow('interrupted');
}

async function mountsBelow(path: string): Promise<string[]> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  return mounts.split('\n').filter((line) => line.includes(path));
}

async function processesNaming(path: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    // A process that ends while we look has no command line any more.
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes(path)) found.push(command.replaceAll('\0', ' '));
  }
  return found;
}

test(
  'an interrupted build leaves nothing, and no image',
  async () => {
    await interruptedBuild();
    expect(await listImages(imageDir)).toEqual([]);
    expect(await readdir(join(imageDir, '.build'))).toEqual([]);
    expect(await mountsBelow(directory.path)).toEqual([]);
  },
  INTERRUPT_MS,
);

test(
  'the next build clears away what a killed one left',
  async () => {
    const { id } = await readRecipe('small', recipes);
    const stale = join(imageDir, '.build', `small-${id}-killed`);
    await mkdir(stale, { recursive: true });
    await writeFile(join(stale, 'half'), '');
    await interruptedBuild();
    expect(await readdir(join(imageDir, '.build'))).toEqual([]);
  },
  INTERRUPT_MS,
);

test(
  'a killed build leaves no process, no mount and no image',
  async () => {
    const program = `
    import { buildImage } from '${fileURLToPath(new URL('./build-image.ts', import.meta.url))}';
    const onProgress = (line) => console.log(line);
    const [, imageDir, recipes] = process.argv;
    await buildImage({ template: 'small', imageDir, recipes, onProgress }, AbortSignal.timeout(240_000));
  `;
    const args = ['--input-type=module', '-e', program, imageDir, recipes];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(child, 'exit');
    for await (const text of child.stdout.setEncoding('utf8')) {
      if (UNPACKING.test(String(text))) break;
    }
    child.kill('SIGKILL');
    await exited;
    await expect.poll(() => processesNaming(directory.path)).toEqual([]);
    expect(await listImages(imageDir)).toEqual([]);
    expect(await mountsBelow(directory.path)).toEqual([]);
  },
  INTERRUPT_MS,
);
