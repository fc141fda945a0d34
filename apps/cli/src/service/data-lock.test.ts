import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lockDataDirectory } from './data-lock.ts';
import { servicePaths } from './paths.ts';

/** Is killed between the begin and the end of a write into each directory. */
const CRASH = `
  import { readdirSync } from 'node:fs';
  import { join } from 'node:path';
  const { writeFileAtomic } = await import(process.argv[1]);
  for (const directory of process.argv.slice(2)) {
    writeFileAtomic(join(directory, 'file'), 'x');
    while (!readdirSync(directory).some((name) => name.endsWith('.tmp')));
  }
  process.kill(process.pid, 'SIGKILL');
`;

test('removes what a crash has left of unfinished writes', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'svc-data-lock-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const directories = ['.', 'tls', 'usage', 'logs/agents'].map((name) => join(dataDir, name));
  for (const directory of directories) await mkdir(directory, { recursive: true });
  const serviceKit = import.meta.resolve('@svc/service-kit/process');
  const args = ['--input-type=module', '-e', CRASH, serviceKit, ...directories];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
  const lock = await lockDataDirectory(servicePaths(dataDir));
  onTestFinished(() => lock.release());
  const left = await readdir(dataDir, { recursive: true });
  expect(left.filter((name) => name.endsWith('.tmp'))).toEqual([]);
});
