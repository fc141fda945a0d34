import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Plugin } from 'esbuild';

/**
 * The sources that find files by their own place, and the files that each of them needs in a release, which has them in the
 * same place below its root.
 */
const FILES_OF: Readonly<Record<string, readonly string[]>> = {
  'apps/cli/src/doctor/checks/host.ts': ['scripts/host-packages.txt'],
  'apps/cli/src/watch/page-server.ts': ['apps/cli/src/watch/page'],
  'apps/control-plane/src/catalogue/catalogue.ts': [
    'apps/control-plane/src/catalogue/catalogue.json',
  ],
  'packages/microvm/src/image/agent-builds.ts': ['apps/guest/package.json'],
  // Finds the bundled programs.
  'packages/microvm/src/image/bundle-program.ts': [],
  'packages/microvm/src/image/recipe.ts': ['images'],
  // Finds a package in node_modules.
  'packages/store/src/embedded/binaries.ts': [],
};

/** Files and folders that a release contains because sources look for them, relative to the root of the repository. */
export const LOCATED_FILES: readonly string[] = Object.values(FILES_OF).flat();

/**
 * Has every source of the repository believe that it is where it was, relative to the root: a bundle that is one folder below
 * the root of a release finds the same files as the sources in a checkout. The build fails for a source that is not listed
 * above, since a release would lack its files.
 */
export function keepSourceLocations(repository: string): Plugin {
  return {
    name: 'keep-source-locations',
    setup: ({ onLoad }) => {
      onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const source = relative(repository, path);
        if (source.startsWith('..') || source.includes('node_modules')) return undefined;
        const text = await readFile(path, 'utf8');
        if (!text.includes('import.meta.url')) return undefined;
        if (!(source in FILES_OF)) {
          const reason = 'uses import.meta.url: list the files that it needs in a release';
          return { errors: [{ text: `${source} ${reason} in ${import.meta.filename}` }] };
        }
        const place = `new URL(${JSON.stringify(join('..', source))}, import.meta.url).href`;
        return { loader: 'ts', contents: text.replaceAll('import.meta.url', place) };
      });
    },
  };
}
