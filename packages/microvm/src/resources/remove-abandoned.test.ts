import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from '@svc/service-kit/process';
import { beforeAll, expect, test } from 'vitest';
import { temporaryDirectory } from '../../test/temporary-directory.ts';
import { testImage } from '../../test/test-image.ts';
import { hasProcesses } from '../network/instance/instance-processes.ts';
import { openMicrovmHost } from '../open-host.ts';

const PREPARE_MS = 25 * 60_000;
const KILL_MS = 400_000;
const REGISTRY = '/run/svc/instances';
const FREEZING = 'taking the snapshot';
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Shapes that nothing else uses. */
const BOOTED_MIB = 288;
const FROZEN_MIB = 320;

let imageDir: string;

beforeAll(async () => {
  const test = await testImage();
  ({ imageDir } = test);
  // An earlier run that was interrupted may have completed one.
  const snapshots = join(imageDir, test.image.template, test.image.id, 'snapshots');
  for (const name of await readdir(snapshots).catch(emptyIfAbsent)) {
    if (!name.endsWith(`-1x${BOOTED_MIB}`) && !name.endsWith(`-1x${FROZEN_MIB}`)) continue;
    await rm(join(snapshots, name), { recursive: true });
  }
}, PREPARE_MS);

function emptyIfAbsent(error: NodeJS.ErrnoException): string[] {
  if (error.code === 'ENOENT') return [];
  throw error;
}

/** Takes a snapshot in another process and kills it once it prints `line`. Resolves to its index and what it had. */
async function killedSnapshot(
  memoryMib: number,
  line: string,
): Promise<{ readonly index: number; readonly had: string[] }> {
  const from = (path: string) => fileURLToPath(new URL(path, import.meta.url));
  const program = `
    import { readImage } from '${from('../image/image-store.ts')}';
    import { readRecipe } from '${from('../image/recipe.ts')}';
    import { buildSnapshot } from '${from('../image/build/build-snapshot.ts')}';
    const [, imageDir] = process.argv;
    const { template, id } = await readRecipe('standard');
    const image = await readImage(imageDir, template, id);
    const onProgress = (line) => {
      console.log(line);
      // Else a small VM may be frozen, and its build finished, before the test can kill it.
      if (line === '${FREEZING}') setImmediate(() => process.kill(process.pid, 'SIGSTOP'));
    };
    await buildSnapshot(image, { vcpu: 1, memoryMib: ${memoryMib} }, { imageDir, onProgress }, AbortSignal.timeout(${KILL_MS}));
  `;
  const args = ['--input-type=module', '-e', program, imageDir];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  for await (const text of child.stdout.setEncoding('utf8')) {
    if (String(text).includes(line)) break;
  }
  await expect.poll(() => indexOf(memoryMib), { timeout: 60_000 }).toBeDefined();
  const index = (await indexOf(memoryMib)) ?? -1;
  await expect.poll(() => hasProcesses(index), { timeout: 60_000 }).toBe(true);
  // Looked at while it lives: once it is dead, a host that another test opens may remove everything at once.
  const had = await traces(index, memoryMib);
  child.kill('SIGKILL');
  await exited;
  return { index, had };
}

/** The instance of a snapshot in the making. */
async function indexOf(memoryMib: number): Promise<number | undefined> {
  for (const name of await readdir(REGISTRY)) {
    if (!/^\d+$/.test(name)) continue;
    const dataDir = await readFile(join(REGISTRY, name), 'utf8');
    if (dataDir.includes(`-1x${memoryMib}-`)) return Number(name);
  }
  return undefined;
}

/** What an instance and a build have on this machine. */
async function traces(index: number, memoryMib: number): Promise<string[]> {
  const found: string[] = [];
  const note = (what: string, is: boolean) => is && found.push(what);
  const works = await readdir(join(imageDir, '.builds'));
  note(
    'directory',
    works.some((name) => name.includes(`-1x${memoryMib}-`)),
  );
  // An index that is free again is assigned to the next instance of any test: then the rest is that instance's.
  if (await isReassigned(index, memoryMib)) return found;
  note('process', await hasProcesses(index));
  note('index', (await indexOf(memoryMib)) !== undefined);
  note('mount', (await readFile('/proc/self/mountinfo', 'utf8')).includes(`/run/svc/${index}/`));
  const devices = await readFile('/proc/self/net/dev', 'utf8');
  note('interface', devices.includes(`svc${index}-`));
  const namespaces = await readdir('/run/netns');
  note(
    'namespace',
    namespaces.some((name) => name.startsWith(`svc${index}-`)),
  );
  const tables = await runProgram('nft', ['list', 'tables']);
  note('table', new RegExp(`^table inet svc${index}(_|$)`, 'm').test(tables));
  for (const path of [`memory/svc${index}`, `svc${index}`]) {
    const exists = access(join('/sys/fs/cgroup', path)).then(
      () => true,
      () => false,
    );
    note('control group', await exists);
  }
  return found;
}

async function isReassigned(index: number, memoryMib: number): Promise<boolean> {
  const entries = await readdir(REGISTRY);
  return entries.includes(String(index)) && (await indexOf(memoryMib)) !== index;
}

test.each([
  ['boots', 'booting the image', BOOTED_MIB],
  ['is frozen', FREEZING, FROZEN_MIB],
])(
  'the next start removes everything of a snapshot that was killed while its VM %s',
  async (_step, line, memoryMib) => {
    const { index, had } = await killedSnapshot(memoryMib, line);
    expect(had).toEqual(
      expect.arrayContaining(['process', 'index', 'mount', 'interface', 'namespace', 'table']),
    );
    const own = await temporaryDirectory();
    const options = { dataDir: own.path, imageDir, logger: silent };
    const host = await openMicrovmHost(options, AbortSignal.timeout(180_000));
    // It may have been assigned the same index.
    await host.close({ keepVms: false });
    await own.remove();
    await expect.poll(() => traces(index, memoryMib), { timeout: 60_000 }).toEqual([]);
  },
  KILL_MS,
);
