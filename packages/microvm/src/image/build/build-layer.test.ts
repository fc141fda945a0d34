import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '@svc/service-kit/process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { layeredRecipe, smallRecipe } from '../../../test/small-recipe.ts';
import { temporaryDirectory } from '../../../test/temporary-directory.ts';
import { readRecipe } from '../recipe.ts';
import { listStored } from '../storage/stored-item.ts';
import { ensureBase } from './build-base.ts';

const BUILD_MS = 600_000;
const MIB = 1024 * 1024;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let imageDir: string;
let recipes: string;
let bases: string;

beforeAll(async () => {
  directory = await temporaryDirectory();
  imageDir = join(directory.path, 'images');
  recipes = await smallRecipe(directory.path);
  bases = join(imageDir, '.bases');
  await layeredRecipe(recipes);
});
afterAll(() => directory.remove());

/** Builds what `layered` needs, until `stopAt` is printed if that is given. Returns the lines of progress. */
async function build(stopAt?: string): Promise<string[]> {
  const abort = new AbortController();
  const lines: string[] = [];
  const onProgress = (line: string) => {
    lines.push(line);
    if (line === stopAt) abort.abort(new Error('interrupted'));
  };
  const recipe = await readRecipe('layered', recipes);
  await ensureBase(recipe, { template: 'layered', imageDir, recipes, onProgress }, abort.signal);
  return lines;
}

test(
  'a recipe with a base costs the disk only what it adds, and its build resumes after the base',
  async () => {
    await expect(build('comparing the disk with the base')).rejects.toThrow('interrupted');
    const small = `small-${(await readRecipe('small', recipes)).baseId}`;
    expect(await readdir(bases)).toEqual([small]);
    expect(await readdir(join(imageDir, '.builds'))).toEqual([]);
    expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(directory.path);
    expect(await runProgram('losetup', ['--list', '--noheadings'])).not.toContain(directory.path);

    const lines = await build();
    expect(lines).toContain('adding the packages');
    expect(lines).not.toContain('installing the packages');
    expect(await build()).toEqual([]);

    const layered = join(bases, `layered-${(await readRecipe('layered', recipes)).baseId}`);
    const layer = join(layered, 'rootfs.qcow2');
    const info = JSON.parse(await runProgram('qemu-img', ['info', '--output=json', layer]));
    expect(info['virtual-size']).toBe(1280 * MIB);
    expect(info['full-backing-filename']).toBe(join(layered, `${small}.ext4`));
    expect((await stat(layer)).size).toBeLessThan(40 * MIB);
    const { items, bytes } = await listStored(imageDir);
    const [first, second] = items.map((item) => item.bytes);
    expect(bytes).toBeLessThan((first ?? 0) + (second ?? 0) - 50 * MIB);

    const disk = join(directory.path, 'whole.ext4');
    await runProgram('qemu-img', ['convert', '-O', 'raw', layer, disk]);
    await runProgram('e2fsck', ['-fn', disk]);
    const cat = (path: string) => runProgram('debugfs', ['-R', `cat ${path}`, disk]);
    expect(await cat('/etc/inittab')).toBe('::respawn:/usr/bin/greeter --loud\n');
    expect(await cat('/usr/bin/greeter')).toBe('hello\n');
    expect(await cat('/usr/lib/greeting.so')).toBe('compiled\nint greeting;\n');
    expect(await runProgram('debugfs', ['-R', 'stat /usr/bin/jq', disk])).toContain(
      'Type: regular',
    );
    expect(await runProgram('debugfs', ['-R', 'stat /usr/local/bin/query', disk])).toContain(
      'Fast link dest: "/usr/bin/jq"',
    );
    expect(await cat('/etc/resolv.conf')).toContain('nameserver 172.30.0.1');
    const left = await runProgram('debugfs', ['-R', 'ls -p /usr/sbin', disk]);
    expect(left).not.toContain('policy-rc.d');
    expect(await runProgram('debugfs', ['-R', 'ls -p /usr/share/man', disk])).not.toContain('man1');
  },
  BUILD_MS,
);
