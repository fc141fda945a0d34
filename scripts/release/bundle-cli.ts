import { build, type Metafile } from 'esbuild';
import { keepSourceLocations } from './source-locations.ts';

/** CommonJS packages in an ES module need what every CommonJS module has. */
const COMMONJS = `import { createRequire as createRequireHere } from 'node:module';
const { filename: __filename, dirname: __dirname } = import.meta;
const require = createRequireHere(import.meta.url);`;

/** Packages that are imported only if they are installed, and the compiler, which a release with finished programs never needs. */
const LEFT_OUT = ['esbuild', 'cpu-features', 'pg-native', '*.node'];

/**
 * Bundles the command line, with every component of the service, into `directory`, whose parent is the root of the release.
 * What a command does not need stays in files of its own. Deterministic.
 */
export async function bundleCli(repository: string, directory: string): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: repository,
    entryPoints: { main: 'apps/cli/src/main.ts' },
    outdir: directory,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    // Some packages tell their classes apart by name.
    keepNames: true,
    // The release has a file with every licence.
    legalComments: 'none',
    banner: { js: COMMONJS },
    external: LEFT_OUT,
    plugins: [keepSourceLocations(repository)],
    metafile: true,
    logLevel: 'silent',
  });
  return metafile;
}
