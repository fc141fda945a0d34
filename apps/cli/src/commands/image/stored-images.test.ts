import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { ClusterSecrets, type ControlPlane, startControlPlane } from '@svc/control-plane';
import { BlobGoneError, ImageRefusedError } from '@svc/microvm';
import { createLogger, type FileLock, lockFile, Secret } from '@svc/service-kit';
import { StoredImageSource } from '@svc/worker';
import { ComponentDouble } from '@svc/worker-double';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { commandLine, type Outcome } from '../../../test/run-svc.ts';
import { servicePaths } from '../../service/paths.ts';

// Every command is a separate process, which takes seconds to start on a loaded machine.
vi.setConfig({ testTimeout: 600_000 });

const PUSH = ['image', 'push', 'standard'];
const clusterSecret = new Secret('a-secret-of-at-least-32-characters-for-tests');
const signal = () => AbortSignal.timeout(60_000);
const failed = (code: string) => ({ code: 1, errors: expect.stringContaining(code) });

let directory: string;
let plane: ControlPlane;
let lock: FileLock;
let source: StoredImageSource;
let svc: ReturnType<typeof commandLine>;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-cli-images-'));
  const settings = {
    SVC_DATA_DIR: join(directory, 'data'),
    SVC_IMAGE_DIR: join(directory, 'images'),
    SVC_IMAGE_SIGNING_KEY_FILE: join(directory, 'keys', 'key.pem'),
  };
  svc = commandLine({ HOME: directory, ...settings });
  plane = await startControlPlane({
    config: loadConfig({ ...settings, SVC_TLS: 'off', SVC_LISTEN: '127.0.0.1:0' }),
    logger: createLogger({ level: 'silent' }),
    clusterSecrets: await ClusterSecrets.open([clusterSecret]),
  });
  // As the service of this directory has, so that commands use its database.
  lock = await lockFile(servicePaths(settings.SVC_DATA_DIR).lock);
  const controlPlane = { url: plane.url };
  const worker = new ComponentDouble('worker', 'w1', clusterSecret);
  expect((await worker.enrol(plane.url)).status).toBe(204);
  source = new StoredImageSource({ controlPlane, identity: await worker.identity() });
});
afterAll(async () => {
  await source?.[Symbol.asyncDispose]();
  await lock?.release();
  await plane?.close();
  await rm(directory, { recursive: true, force: true });
});

/** Stores files with the names of the image that a push misses. Returns its id. */
async function plantImage({ errors }: Outcome): Promise<string> {
  const [, id = ''] = /the image ([0-9a-f]{12}) of standard has not been built/.exec(errors) ?? [];
  const image = join(directory, 'images', 'standard', id);
  await mkdir(image, { recursive: true });
  const disk = `standard-${id}.ext4`;
  const description = { template: 'standard', id, vcpu: 1, memoryMib: 256, disk: [disk] };
  await writeFile(join(image, 'image.json'), JSON.stringify(description));
  for (const name of ['vmlinuz', 'initrd', disk]) await writeFile(join(image, name), name);
  return id;
}

const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');

async function filesBelow(path: string): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
}

test('an operator makes a key, pushes an image, repairs and removes it', async () => {
  expect(await svc(PUSH)).toMatchObject(failed('no_signing_key'));
  const { output: key } = await svc(['image', 'key']);
  expect(key).toMatch(/^ed25519:[A-Za-z0-9_-]{43}\n$/);
  expect(await svc(['image', 'key'])).toEqual({ code: 0, output: key, errors: '' });
  const file = join(directory, 'keys', 'key.pem');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  await chmod(file, 0o640);
  expect(await svc(PUSH)).toMatchObject(failed('signing_key_exposed'));
  await chmod(file, 0o600);

  const unbuilt = await svc(PUSH);
  expect(unbuilt).toMatchObject(failed('image_not_built'));
  const image = await plantImage(unbuilt);
  const name = { template: 'standard', image, arch: process.arch };
  expect(await source.locate(name, signal())).toBeUndefined();
  expect(await svc(PUSH)).toMatchObject({ code: 0, output: expect.stringContaining(image) });
  expect((await svc(PUSH)).output).toContain('the store has it');

  const list = async () => JSON.parse((await svc(['image', 'ls', '--store', '--json'])).output);
  expect(await list()).toMatchObject([{ ...name, signer: key.trim(), workers: 0 }]);
  expect((await svc(['image', 'ls', '--store'])).output).toContain(key.trim());

  const manifest = await source.locate(name, signal());
  if (manifest === undefined) throw new Error('the control plane does not know the image');
  const envelope = await source.blob(manifest.sha256, manifest.size, signal());
  expect(sha256(envelope)).toBe(manifest.sha256);
  const tooLarge = source.blob(manifest.sha256, manifest.size - 1, signal());
  await expect(tooLarge).rejects.toBeInstanceOf(ImageRefusedError);
  const unknown = source.blob('0'.repeat(64), 1, signal());
  await expect(unknown).rejects.toBeInstanceOf(BlobGoneError);

  const objects = join(directory, 'data', 'objects', 'keys', 'images');
  const blobs = await readdir(objects);
  const [damaged = ''] = blobs.filter((digest) => digest !== manifest.sha256);
  for (const file of await filesBelow(join(objects, damaged))) await writeFile(file, 'damaged');
  await rm(join(objects, manifest.sha256), { recursive: true });
  const lost = source.blob(manifest.sha256, manifest.size, signal());
  await expect(lost).rejects.toBeInstanceOf(BlobGoneError);
  expect((await svc(PUSH)).output).toContain('replaced 2 damaged or lost blobs');
  expect(sha256(await source.blob(damaged, 1024, signal()))).toBe(damaged);
  const signedAgain = await source.locate(name, signal());
  expect(signedAgain?.sha256).not.toBe(manifest.sha256);
  expect((await svc(PUSH)).output).toContain('the store has it, undamaged');

  const remove = ['image', 'rm', 'standard', image, '--store'];
  expect(await svc(remove)).toMatchObject({ code: 0 });
  expect(await svc(remove)).toMatchObject(failed('image_not_found'));
  expect(await list()).toEqual([]);
});
