import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const BUILD_MS = 60_000;

/** The package in the repository: a program of the same name that prints the greeting. */
export const APT_PACKAGE = { name: 'svc-greeting', greeting: 'hello from apt' } as const;

/** A flat, unsigned apt repository with one package, in a temporary directory. */
export interface AptRepository extends AsyncDisposable {
  readonly directory: string;
}

/** Builds the repository. Its source line is `deb [trusted=yes] <url>/ ./`. */
export async function buildAptRepository(): Promise<AptRepository> {
  const { name, greeting } = APT_PACKAGE;
  const directory = await mkdtemp(join(tmpdir(), 'svc-apt-'));
  const tree = join(directory, 'tree');
  const control = [
    ...[
      `Package: ${name}`,
      'Version: 1.0',
      'Architecture: all',
      'Maintainer: svc <svc@example.com>',
    ],
    'Description: a package of the end-to-end tests',
  ].join('\n');
  await mkdir(join(tree, 'DEBIAN'), { recursive: true });
  await mkdir(join(tree, 'usr/bin'), { recursive: true });
  await writeFile(join(tree, 'DEBIAN/control'), `${control}\n`);
  await writeFile(join(tree, 'usr/bin', name), `#!/bin/sh\necho '${greeting}'\n`, { mode: 0o755 });
  const file = `${name}_1.0_all.deb`;
  const args = ['--root-owner-group', '--build', tree, join(directory, file)];
  await run('dpkg-deb', args, { timeout: BUILD_MS });
  const bytes = await readFile(join(directory, file));
  const digest = createHash('sha256').update(bytes).digest('hex');
  const index = [control, `Filename: ./${file}`, `Size: ${bytes.length}`, `SHA256: ${digest}`];
  await writeFile(join(directory, 'Packages'), `${index.join('\n')}\n`);
  return {
    directory,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}
