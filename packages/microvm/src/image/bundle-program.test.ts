import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bundleProgram } from './bundle-program.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-bundle-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function program(name: string, text: string): Promise<string> {
  await mkdir(join(directory, name));
  await writeFile(join(directory, name, 'part.ts'), text);
  const entry = join(directory, name, 'main.ts');
  await writeFile(entry, `import { greet } from './part.ts';\nconsole.log(greet('world'));\n`);
  return entry;
}

test('a bundled program runs without its sources', async () => {
  const entry = await program('one', 'export const greet = (whom: string) => "hello " + whom;');
  const text = await bundleProgram(entry);
  await rm(join(directory, 'one'), { recursive: true });
  const file = join(directory, 'program.cjs');
  await writeFile(file, text);
  const { stdout } = await promisify(execFile)(process.execPath, [file]);
  expect(stdout).toBe('hello world\n');
});

test('bundles several programs concurrently, each with its own imports', async () => {
  const entries = await Promise.all([
    program('one', 'export const greet = (whom: string) => "hello " + whom;'),
    program('two', 'export const greet = (whom: string) => "goodbye " + whom;'),
  ]);
  const [one, two] = await Promise.all(entries.map(bundleProgram));
  expect(one).toContain('hello');
  expect(two).toContain('goodbye');
});

test('reports why a program cannot be bundled, and bundles it once fixed', async () => {
  const entry = await program('one', 'export const other = 1;');
  await expect(bundleProgram(entry)).rejects.toThrow('greet');
  await writeFile(join(directory, 'one/part.ts'), 'export const greet = () => 1;');
  expect(await bundleProgram(entry)).toContain('greet');
});
