import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { CACHED_PROGRAMS } from '@svc/service-kit/testing';

const ROOT = resolve(import.meta.dirname, '../../../..');
const IMAGE_PACKAGES = join(ROOT, 'images/standard/npm');
/** Time limit of an installation: hundreds of MiB from a registry, on a busy machine. */
export const INSTALL_MS = 600_000;

/** Removes the versions that no run has used for a month. */
const INSTALL = `
  touch . && [ -e complete ] && exit 0
  find .. -maxdepth 1 -name 'agents-*' -mtime +30 -exec rm -rf {} +
  cp "$1/package.json" "$1/package-lock.json" . &&
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && touch complete
`;

/** Paths of the vendors' programs. */
export interface Clis {
  readonly claude: string;
  readonly codex: string;
}

/**
 * The CLIs in the versions of the standard image, from its lock file. The first call installs them into a cache that
 * all checkouts of the user share; concurrent calls of other test files wait for it. Takes up to {@link INSTALL_MS}.
 */
export async function installClis(): Promise<Clis> {
  const lockFile = await readFile(join(IMAGE_PACKAGES, 'package-lock.json'));
  const version = createHash('sha256').update(lockFile).digest('hex').slice(0, 16);
  const directory = join(CACHED_PROGRAMS, `agents-${version}`);
  await mkdir(directory, { recursive: true });
  const install = ['sh', '-c', INSTALL, 'sh', IMAGE_PACKAGES];
  await promisify(execFile)('flock', [`${directory}.lock`, ...install], {
    cwd: directory,
    timeout: INSTALL_MS,
  });
  // Without symbolic links, like `/proc/<pid>/exe`.
  const packages = await realpath(join(directory, 'node_modules'));
  return {
    claude: join(packages, '@anthropic-ai/claude-code-linux-x64/claude'),
    codex: join(packages, '@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex'),
  };
}
