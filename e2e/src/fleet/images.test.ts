import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CUSTOMER_SCRIPT, FleetLab, type Piece } from '@svc/fleet-lab';
import { BUILT_IMAGES } from '@svc/service-driver';
import { afterAll, beforeAll, expect, test } from 'vitest';

const TIMEOUT = { timeout: 600_000 };
const SOON = { timeout: 60_000, interval: 20 };
const BUILT = { SVC_IMAGE_DIR: BUILT_IMAGES };
const run = promisify(execFile);

let lab: FleetLab;
let operator: Piece;
let key: string;

beforeAll(async () => {
  lab = await FleetLab.start({ controlPlanes: 1, runtimeHosts: 0, workers: 0 }, CUSTOMER_SCRIPT);
  const [controlPlane] = lab.controlPlanes;
  if (controlPlane === undefined) throw new Error('the lab has no control plane');
  operator = controlPlane;
  key = JSON.parse((await operator.command(['image', 'key', '--json'])).output).public_key;
  const pushed = await operator.command(['image', 'push', 'standard'], BUILT);
  expect(pushed, pushed.output).toMatchObject({ exitCode: 0 });
}, TIMEOUT.timeout);

afterAll(() => lab?.[Symbol.asyncDispose](), TIMEOUT.timeout);

/** A worker with an image directory of its own that trusts a key and builds nothing. */
async function addWorker(name: string, trusted: string): Promise<Piece> {
  const directory = join(lab.directory, `images-${name}`);
  await mkdir(directory);
  return lab.addWorker(name, {
    SVC_IMAGE_DIR: directory,
    SVC_IMAGE_SOURCE: 'store',
    SVC_IMAGE_TRUSTED_KEYS: trusted,
  });
}

/** Starts a worker and kills it while it fetches the image. */
async function killDuringFetch(worker: Piece): Promise<void> {
  const start = worker.start();
  const ended = expect(start).rejects.toThrow('ended');
  await expect.poll(() => allocatedBytes(imagesOf(worker, '.pulls')), SOON).toBeGreaterThan(0);
  await worker.end('SIGKILL');
  await ended;
}

const imagesOf = ({ machine }: Piece, name: string) =>
  join(lab.directory, `images-${machine.name}`, name);

/** Bytes that the files below a directory hold. 0 if it does not exist. */
async function allocatedBytes(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    },
  );
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.ext4'));
  const stats = files.map(({ parentPath, name }) => stat(join(parentPath, name)));
  return (await Promise.all(stats)).reduce((sum, { blocks }) => sum + blocks * 512, 0);
}

test('a worker without the internet becomes ready from the store', TIMEOUT, async () => {
  const worker = await addWorker('offline', key);
  const [program = '', ...words] = [...worker.machine.launcher, 'ip', 'route', 'get', '1.1.1.1'];
  await expect(run(program, words)).rejects.toThrow('unreachable');
  await killDuringFetch(worker);
  await expect(stat(imagesOf(worker, 'standard'))).rejects.toThrow('ENOENT');
  await worker.start();
  expect(await readFile(worker.logFile, 'utf8')).toContain('fetched the image from the store');
  expect(await readdir(imagesOf(worker, '.pulls'))).toEqual([]);

  const client = await lab.signUp();
  const { vm_id } = await client.sandboxes.create({ template: 'standard' });
  const { output } = await client.sandboxes.exec(vm_id, { command: 'python3 -c "print(6 * 7)"' });
  expect(output).toBe('42\n');
  await client.sandboxes.delete(vm_id);

  const stored = JSON.parse((await operator.command(['image', 'ls', '--store', '--json'])).output);
  expect(stored).toMatchObject([{ template: 'standard', signer: key, workers: 1 }]);
  const removal = ['image', 'rm', 'standard', stored[0].image, '--store'];
  expect(await operator.command(removal)).toMatchObject({
    exitCode: 1,
    output: expect.stringContaining('image_in_use'),
  });
});

test('a worker that trusts another key refuses the image', TIMEOUT, async () => {
  const worker = await addWorker('stranger', `ed25519:${'A'.repeat(43)}`);
  await expect(worker.start()).rejects.toThrow(
    /no valid signature of a trusted key[\s\S]*image_refused/,
  );
});

test(
  'an image of which the store has changed a blob is refused until it is pushed again',
  TIMEOUT,
  async () => {
    const { objects } = lab.backing;
    const signal = AbortSignal.timeout(TIMEOUT.timeout);
    const page = await objects.list({ prefix: 'images/', limit: 1000 }, signal);
    // That of the description, which is fetched first.
    const [blob] = page.objects.toSorted((one, other) => one.size - other.size);
    if (blob === undefined) throw new Error('the store has no blob');
    const { size } = blob;
    await objects.put(blob.key, Buffer.alloc(size), { size, signal });
    const worker = await addWorker('victim', key);
    await expect(worker.start()).rejects.toThrow(
      /is not what the manifest says[\s\S]*svc image push standard replaces what is damaged/,
    );
    const pushed = await operator.command(['image', 'push', 'standard'], BUILT);
    expect(pushed.output).toContain('replaced 1 damaged or lost blobs');
    await killDuringFetch(worker);
  },
);
