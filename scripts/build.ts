/**
 * Builds the contract and the SDK into `packages/<name>/dist`: JavaScript, type declarations and a package.json each. The
 * SDK's folder contains the contract, so that the tarball of `npm pack` can be installed without another package of this
 * repository. The services run from source and need no build.
 */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** In dependency order. */
const BUILT = ['contract', 'sdk'] as const;
const COMPILE_TIMEOUT_MS = 300_000;

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

for (const name of BUILT) {
  const folder = join('packages', name);
  await rm(join(folder, 'dist'), { recursive: true, force: true });
  await compile(folder);
  await writePublishedManifest(folder);
  await copyFile('LICENSE', join(folder, 'dist/LICENSE'));
  await copyReadme(folder);
  console.log(`built ${folder}/dist`);
}
await bundle('packages/sdk/dist', 'packages/contract/dist');

/** Copies a built package into the one that depends on it, whose tarball then contains it. */
async function bundle(into: string, bundled: string): Promise<void> {
  const { name, dependencies } = await readManifest(bundled);
  await cp(bundled, join(into, 'node_modules', name), { recursive: true });
  const manifest = await readManifest(into);
  await writeManifest(into, {
    ...manifest,
    // Not every package manager installs the dependencies of a bundled package.
    dependencies: { ...dependencies, ...manifest.dependencies },
    bundleDependencies: [name],
  });
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

/** Writes the manifest of the built package: that of the workspace, with the built files as its exports. */
async function writePublishedManifest(folder: string): Promise<void> {
  const { private: _, ...manifest } = await readManifest(folder);
  await writeManifest(join(folder, 'dist'), {
    ...manifest,
    engines: { node: '>=20.18.1' },
    exports: { '.': { types: './index.d.ts', default: './index.js' } },
  });
}

async function readManifest(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
}

async function writeManifest(folder: string, manifest: object): Promise<void> {
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}
