import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { smallRecipe } from '../../../test/small-recipe.ts';
import { temporaryDirectory } from '../../../test/temporary-directory.ts';
import { listImages } from '../image-info.ts';
import { readRecipe } from '../recipe.ts';
import { buildImage } from './build-image.ts';

const INTERRUPT_MS = 300_000;
/** Package installation has begun. Of lines printed together only the last is reported, so either may be seen first. */
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

/** Builds until the packages are being unpacked, then aborts. */
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
    // A process that has ended in the meantime has no command line.
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes(path)) found.push(command.replaceAll('\0', ' '));
  }
  return found;
}

test(
  'an interrupted build leaves no files, mounts or image',
  async () => {
    await interruptedBuild();
    expect(await listImages(imageDir)).toEqual([]);
    expect(await readdir(join(imageDir, '.builds'))).toEqual([]);
    expect(await mountsBelow(directory.path)).toEqual([]);
  },
  INTERRUPT_MS,
);

test(
  'a build removes the files of a killed build',
  async () => {
    const { id } = await readRecipe('small', recipes);
    const stale = join(imageDir, '.builds', `small-${id}-base-killed`);
    await mkdir(stale, { recursive: true });
    await writeFile(join(stale, 'half'), '');
    await interruptedBuild();
    expect(await readdir(join(imageDir, '.builds'))).toEqual([]);
  },
  INTERRUPT_MS,
);

test(
  'a killed build leaves no process, mount or image',
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
