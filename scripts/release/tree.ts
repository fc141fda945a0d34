import { chmod, cp, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { bundleOptions, bundlePath } from '../../packages/microvm/src/image/bundle-program.ts';
import { recipeNames } from '../../packages/microvm/src/image/recipe.ts';
import { bundleCli } from './bundle-cli.ts';
import { CHART, PLATFORM, REPOSITORY, type ReleaseFacts } from './facts.ts';
import { licenceTexts } from './licences.ts';
import { LOCATED_FILES } from './source-locations.ts';

const RUNTIME_LICENCES = 'scripts/release/licences/embedded-postgresql.txt';
/** Files of the repository that a release has in the same place, in addition to those that its sources look for. */
const COPIED = ['LICENSE', 'docs', 'deploy/grafana', CHART, 'deploy/prometheus'] as const;

/**
 * Writes everything of a release but the programs in `node_modules`: the bundled command line and guest programs, the recipes
 * of the images, files for operators, and the licences of all that is bundled.
 */
export async function writeTree(root: string, { version }: ReleaseFacts): Promise<void> {
  const { inputs } = await bundleCli(REPOSITORY, join(root, 'lib'));
  const files = new Set(Object.keys(inputs));
  for (const entry of await guestPrograms()) {
    for (const input of await bundleGuestProgram(entry, root)) files.add(input);
  }
  for (const path of [...COPIED, ...LOCATED_FILES]) {
    await cp(join(REPOSITORY, path), join(root, path), {
      recursive: true,
      filter: (source) => !source.includes('node_modules'),
    });
  }
  await mkdir(join(root, 'bin'));
  await cp(join(REPOSITORY, 'scripts/release/launcher.sh'), join(root, 'bin/svc'));
  await cp(join(REPOSITORY, 'scripts/release/README.md'), join(root, 'README.md'));
  const licences = [
    await licenceTexts(REPOSITORY, files),
    await readFile(join(REPOSITORY, RUNTIME_LICENCES), 'utf8'),
  ];
  await writeFile(join(root, 'THIRD-PARTY-LICENSES.txt'), licences.join(`\n${'-'.repeat(80)}\n\n`));
  await writeFile(
    join(root, 'package.json'),
    `${JSON.stringify(await manifest(version), null, 2)}\n`,
  );
  await settleModes(root);
}

/** The programs of this repository that run in sandboxes, of all recipes. */
export async function guestPrograms(): Promise<string[]> {
  const images = join(REPOSITORY, 'images');
  const entries = new Set<string>();
  for (const template of await recipeNames()) {
    const recipe = JSON.parse(await readFile(join(images, template, 'image.json'), 'utf8')) as {
      readonly programs?: Readonly<Record<string, string>>;
    };
    for (const entry of Object.values(recipe.programs ?? {})) entries.add(entry);
  }
  return [...entries].sort();
}

/** Returns the files that are in the bundle, relative to the repository. */
async function bundleGuestProgram(entry: string, root: string): Promise<string[]> {
  const { outputFiles, metafile } = await build({ ...bundleOptions(entry), metafile: true });
  const file = join(root, bundlePath(entry));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, outputFiles.map(({ text }) => text).join(''));
  return Object.keys(metafile.inputs);
}

/** The manifest of the npm package. Its dependencies are the programs that the other forms of a release contain. */
async function manifest(version: string): Promise<object> {
  const folder = join(REPOSITORY, 'scripts/release/runtime/package.json');
  const { dependencies } = JSON.parse(await readFile(folder, 'utf8')) as { dependencies: object };
  return {
    name: '@svc/cli',
    version,
    description:
      'Self-hostable computers for AI agents: micro-VM sandboxes behind a small REST API',
    license: 'Apache-2.0',
    type: 'module',
    bin: { svc: 'bin/svc' },
    os: [PLATFORM.os],
    cpu: [PLATFORM.cpu],
    dependencies,
  };
}

/** Gives files and folders the same permissions whatever the umask of the checkout was. The recipes' digests contain them. */
async function settleModes(root: string): Promise<void> {
  await chmod(join(root, 'bin/svc'), 0o755);
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const { mode } = await stat(path);
    await chmod(path, (mode & 0o111) === 0 ? 0o644 : 0o755);
  }
}
