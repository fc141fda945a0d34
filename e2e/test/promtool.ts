import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CACHED_PROGRAMS } from '@svc/service-driver';

const run = promisify(execFile);

const DOWNLOAD_MS = 300_000;
const CHECK_MS = 60_000;

/**
 * Runs Prometheus' own checker in a directory and returns what it printed. Takes it out of Debian's package, which is
 * not installed: that would start a server.
 * @throws with the output when a check fails
 */
export async function promtool(args: readonly string[], directory: string): Promise<string> {
  const { stdout, stderr } = await run(await findPromtool(), [...args], {
    cwd: directory,
    timeout: CHECK_MS,
  });
  return stdout + stderr;
}

async function findPromtool(): Promise<string> {
  const program = join(CACHED_PROGRAMS, 'promtool');
  const isThere = await access(program, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isThere) await downloadPromtool(program);
  return program;
}

async function downloadPromtool(program: string): Promise<void> {
  await mkdir(CACHED_PROGRAMS, { recursive: true });
  const directory = await mkdtemp(join(CACHED_PROGRAMS, 'promtool-'));
  const inDirectory = { cwd: directory, timeout: DOWNLOAD_MS };
  const download = () => run('apt-get', ['-q', 'download', 'prometheus'], inDirectory);
  try {
    // Without lists of packages, or with old ones, there is nothing to download.
    await download().catch(async () => {
      await run('apt-get', ['-q', 'update'], inDirectory);
      await download();
    });
    const archive = (await readdir(directory)).find((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error('apt-get downloaded no package');
    await run('dpkg-deb', ['--extract', archive, '.'], inDirectory);
    await rename(join(directory, 'usr/bin/promtool'), program);
  } finally {
    await rm(directory, { recursive: true });
  }
}
