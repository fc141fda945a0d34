/**
 * Builds the published packages, the contract and the SDK, into `packages/<name>/dist`: JavaScript, type declarations
 * and a package.json each. The services run from source and need no build.
 */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** In dependency order. */
const PUBLISHED = ['contract', 'sdk'] as const;
const COMPILE_TIMEOUT_MS = 300_000;

interface Manifest {
  readonly private?: boolean;
  readonly [field: string]: unknown;
}

for (const name of PUBLISHED) {
  const folder = join('packages', name);
  await rm(join(folder, 'dist'), { recursive: true, force: true });
  await compile(folder);
  await writeManifest(folder);
  await copyFile('LICENSE', join(folder, 'dist/LICENSE'));
  await copyReadme(folder);
  console.log(`built ${folder}/dist`);
}

/** Copies the README if the package has one. */
async function copyReadme(folder: string): Promise<void> {
  const readme = join(folder, 'README.md');
  if (existsSync(readme)) await copyFile(readme, join(folder, 'dist/README.md'));
}

async function compile(folder: string): Promise<void> {
  const tsc = [
    'node_modules/@typescript/native/bin/tsc',
    '-p',
    join(folder, 'tsconfig.build.json'),
  ];
  try {
    await promisify(execFile)(process.execPath, tsc, { timeout: COMPILE_TIMEOUT_MS });
  } catch (error) {
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
    throw new Error(`${folder} does not compile:\n${output}`, { cause: error });
  }
}

/** Writes the manifest of the published package: that of the workspace, with the built files as its exports. */
async function writeManifest(folder: string): Promise<void> {
  const { private: _, ...manifest } = JSON.parse(
    await readFile(join(folder, 'package.json'), 'utf8'),
  ) as Manifest;
  const published = {
    ...manifest,
    engines: { node: '>=20.18.1' },
    exports: { '.': { types: './index.d.ts', default: './index.js' } },
  };
  await writeFile(join(folder, 'dist/package.json'), `${JSON.stringify(published, null, 2)}\n`);
}
