import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BuildOptions } from 'esbuild';

const REPOSITORY = fileURLToPath(new URL('../../../../', import.meta.url));
const TARGET = 'node24';
/** Packages with machine code, which cannot be in a bundle. The recipe of a program that uses one lists it in `npmFiles`. */
const NATIVE = ['@napi-rs/canvas'];

const bundled = new Map<string, Promise<string>>();
let last: Promise<unknown> = Promise.resolve();

/**
 * Bundles a program of this repository and everything it imports into one file for Node. Deterministic: equal sources
 * give equal text. Each program is bundled once per process, so changed sources take effect at the next start. A release has
 * the bundles in place of the sources.
 */
export function bundleProgram(entry: string): Promise<string> {
  const known = bundled.get(entry);
  if (known !== undefined) return known;
  // One at a time: stopping the compiler's process would break another bundle in progress.
  const text = last.then(() => bundle(entry));
  last = text.catch(() => bundled.delete(entry));
  bundled.set(entry, text);
  return text;
}

/** Where a release has the bundle of a program, relative to its root. */
export function bundlePath(entry: string): string {
  return entry.replace(/\.ts$/, '.cjs');
}

/** How a program is bundled. The output is not written to a file. */
export function bundleOptions(entry: string) {
  return {
    entryPoints: [entry],
    // Keeps the path of the repository out of the bundle.
    absWorkingDir: REPOSITORY,
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    target: TARGET,
    external: NATIVE,
    logLevel: 'silent',
  } satisfies BuildOptions;
}

async function bundle(entry: string): Promise<string> {
  const released = join(REPOSITORY, bundlePath(entry));
  if (existsSync(released)) return readFile(released, 'utf8');
  const { build, stop } = await import('esbuild');
  try {
    const { outputFiles } = await build(bundleOptions(entry));
    return outputFiles.map(({ text }) => text).join('');
  } finally {
    await stop();
  }
}
