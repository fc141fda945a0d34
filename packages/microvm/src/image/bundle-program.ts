import { fileURLToPath } from 'node:url';

const REPOSITORY = fileURLToPath(new URL('../../../../', import.meta.url));
const TARGET = 'node24';

const bundled = new Map<string, Promise<string>>();
let last: Promise<unknown> = Promise.resolve();

/**
 * Bundles a program of this repository, with all that it imports, into one file for Node. The same sources make the
 * same text. Done once in a process: sources that change are for the next start.
 */
export function bundleProgram(entry: string): Promise<string> {
  const known = bundled.get(entry);
  if (known !== undefined) return known;
  // One after the other: stopping the compiler's process must not end another's work.
  const text = last.then(() => bundle(entry));
  last = text.catch(() => bundled.delete(entry));
  bundled.set(entry, text);
  return text;
}

async function bundle(entry: string): Promise<string> {
  const { build, stop } = await import('esbuild');
  try {
    const { outputFiles } = await build({
      entryPoints: [entry],
      // Paths in the text must not say where the repository lies.
      absWorkingDir: REPOSITORY,
      bundle: true,
      write: false,
      platform: 'node',
      format: 'cjs',
      target: TARGET,
      logLevel: 'silent',
    });
    return outputFiles.map(({ text }) => text).join('');
  } finally {
    await stop();
  }
}
