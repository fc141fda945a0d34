import { mkdir, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryImageStore } from '../../../test/memory-image-store.ts';
import { smallRecipe } from '../../../test/small-recipe.ts';
import { temporaryDirectory } from '../../../test/temporary-directory.ts';
import { DISK_BYTES, DISK_DATA, unbootableImage } from '../../../test/unbootable-image.ts';
import { allocatedBytes } from '../../disk-space.ts';
import { imageDirectory } from '../image-store.ts';
import { packPart } from './blob-codec.ts';
import { fetchImage } from './fetch-image.ts';
import { ImageNotStoredError, ImageRefusedError } from './image-refused.ts';
import {
  type ImageKey,
  type ImageManifest,
  localManifest,
  PART_BYTES,
  sha256,
  signManifest,
} from './manifest.ts';
import { pullImage } from './pull-image.ts';
import { type PushedImage, pushImage } from './push-image.ts';
import { createImageSigningKey, publicKeyText, readImageSigningKey } from './signing-keys.ts';

const TEMPLATE = 'small';
const VERSION = '1.2.0';
const OPERATOR = readImageSigningKey(createImageSigningKey().privateKey);
const STRANGER = readImageSigningKey(createImageSigningKey().privateKey);
const signal = () => AbortSignal.timeout(120_000);
const onProgress = () => undefined;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let recipes: string;
let builder: string;
let worker: string;
let store: MemoryImageStore;
let built: Awaited<ReturnType<typeof unbootableImage>>;
let key: ImageKey;

beforeEach(async () => {
  directory = await temporaryDirectory();
  builder = join(directory.path, 'builder');
  worker = join(directory.path, 'worker');
  await mkdir(worker);
  recipes = await smallRecipe(directory.path);
  built = await unbootableImage(builder, TEMPLATE, recipes);
  key = { template: TEMPLATE, image: built.id, arch: process.arch };
  store = new MemoryImageStore();
});
afterEach(() => directory.remove());

function push(signingKey = OPERATOR): Promise<PushedImage> {
  const where = { template: TEMPLATE, imageDir: builder, recipes, sink: store };
  return pushImage({ ...where, signingKey, version: VERSION, onProgress }, signal());
}

interface PullOptions {
  readonly trustedKeys?: readonly string[];
  readonly version?: string;
  readonly notBefore?: Date;
  readonly mayBuild?: boolean;
  readonly limit?: AbortSignal;
  readonly onOutcome?: (line: string) => void;
}

const storeOptions = (options: PullOptions = {}) => ({
  source: store,
  trustedKeys: options.trustedKeys ?? [publicKeyText(OPERATOR)],
  version: options.version ?? VERSION,
  notBefore: options.notBefore,
  mayBuild: options.mayBuild ?? false,
  onOutcome: options.onOutcome ?? (() => undefined),
});

function pull(options: PullOptions = {}): Promise<boolean> {
  const where = { imageDir: worker, onProgress };
  const image = { template: TEMPLATE, id: built.id };
  return pullImage(image, storeOptions(options), where, options.limit ?? signal());
}

const pulled = () => imageDirectory(worker, TEMPLATE, built.id);

async function expectSameFiles(): Promise<void> {
  for (const name of await readdir(built.directory)) {
    const [one, other] = await Promise.all(
      [built.directory, pulled()].map((path) => readFile(join(path, name))),
    );
    expect(other?.equals(one ?? Buffer.of()), name).toBe(true);
  }
}

/** The manifest that workers get, and what they get instead of it, signed again unless it comes with its signature. */
const manifest = (): ImageManifest =>
  localManifest(store.blobs.get(store.published.at(-1)?.manifest ?? '') ?? Buffer.of());

/** Has a (broken into) control plane name other content, which some key signed. */
function substitute(changed: ImageManifest, signingKey = OPERATOR): void {
  replaceManifest(signManifest(changed, signingKey));
}

function replaceManifest(envelope: Buffer): void {
  const [current] = store.published.splice(-1);
  if (current === undefined) throw new Error('nothing was pushed');
  store.blobs.set(sha256(envelope), envelope);
  store.published.push({ ...current, manifest: sha256(envelope) });
}

/** The first part of the disk. */
function firstPart() {
  const part = manifest().files.find(({ name }) => name === built.disk)?.parts[0];
  if (part === undefined) throw new Error('the disk has no part');
  return part;
}

async function expectRefused(reason: string, options: PullOptions = {}): Promise<void> {
  for (const mayBuild of [false, true]) {
    const attempt = pull({ ...options, mayBuild });
    await expect(attempt).rejects.toBeInstanceOf(ImageRefusedError);
    await expect(attempt).rejects.toThrow(reason);
  }
  await expect(stat(pulled())).rejects.toThrow('ENOENT');
}

describe('a push', () => {
  test('and a pull give the same files, with their holes', async () => {
    await push();
    expect(await pull()).toBe(true);
    await expectSameFiles();
    const info = await stat(join(pulled(), built.disk));
    expect(info.size).toBe(DISK_BYTES);
    const data = DISK_DATA.reduce((sum, [, length]) => sum + length, 0);
    expect(allocatedBytes(info)).toBeLessThan(data + 1024 * 1024);
    expect(info.mode & 0o777).toBe(0o644);
    // Of 40 MiB, only parts with data have blobs.
    expect(manifest().files.find(({ name }) => name === built.disk)?.parts.length).toBe(4);
  });

  test('sends nothing that is there', async () => {
    const first = await push();
    expect(first).toMatchObject({ id: built.id, unchanged: false });
    const { sent } = store;
    const count = sent.length;
    expect(new Set(sent).size).toBe(count);
    expect(await push()).toMatchObject({ unchanged: true, sentBytes: 0 });
    expect(sent.length).toBe(count);
    expect(store.published.length).toBe(1);
  });

  test('goes on where one that broke off ended', async () => {
    store.beforePut = () => {
      if (store.sent.length === 3) throw new Error('the connection broke');
    };
    await expect(push()).rejects.toThrow('the connection broke');
    expect(store.published).toEqual([]);
    const before = [...store.sent];
    expect(before.length).toBeGreaterThanOrEqual(3);
    store.beforePut = () => undefined;
    await push();
    expect(store.sent.length).toBe(new Set(store.sent).size);
    expect(await pull()).toBe(true);
  });

  test('with a new key signs the same blobs again', async () => {
    await push();
    const count = store.sent.length;
    expect(await push(STRANGER)).toMatchObject({ unchanged: false });
    expect(store.sent.length).toBe(count + 1);
    await expectRefused('signature');
    expect(await pull({ trustedKeys: [OPERATOR, STRANGER].map(publicKeyText) })).toBe(true);
  });

  test('replaces what the store has lost or changed', async () => {
    await push();
    const { blob } = firstPart();
    store.blobs.set(blob.sha256, Buffer.alloc(blob.size));
    await expectRefused('is not what the manifest says');
    const repairs = { unchanged: true, repaired: 1, sentBytes: blob.size };
    expect(await push()).toMatchObject(repairs);
    store.blobs.delete(blob.sha256);
    expect(await push()).toMatchObject(repairs);
    expect(await push()).toMatchObject({ unchanged: true, repaired: 0, sentBytes: 0 });
    const { manifest: damaged = '' } = store.published.at(-1) ?? {};
    store.blobs.set(damaged, Buffer.from('{}'));
    await expectRefused('another one than the control plane named');
    expect(await push()).toMatchObject({ unchanged: false, repaired: 1 });
    expect(store.published.at(-1)?.manifest).not.toBe(damaged);
    expect(await pull()).toBe(true);
    await expectSameFiles();
  });

  test('of an image that was not built says so', async () => {
    builder = join(directory.path, 'empty');
    await expect(push()).rejects.toBeInstanceOf(ImageNotStoredError);
  });
});

describe('a pull', () => {
  test('goes on after an interruption, and fetches no part twice', async () => {
    await push();
    const stopping = new AbortController();
    store.beforeBlob = () => {
      if (store.fetched.length >= 4) stopping.abort(new Error('stopped'));
    };
    await expect(pull({ limit: stopping.signal })).rejects.toThrow('stopped');
    const before = new Set(store.fetched.splice(0));
    store.beforeBlob = () => undefined;
    expect(await pull()).toBe(true);
    await expectSameFiles();
    const { manifest: manifestBlob } = store.published[0] ?? {};
    const again = store.fetched.filter((blob) => before.has(blob) && blob !== manifestBlob);
    // Those that were in transfer.
    expect(again.length).toBeLessThanOrEqual(4);
    expect(store.fetched.length).toBeLessThan(manifest().files.flatMap((f) => f.parts).length + 1);
  });

  test('repairs what an interruption left damaged, also beyond the end', async () => {
    await push();
    const target = join(directory.path, 'target');
    const options = { image: key, store: storeOptions(), imageDir: worker, onProgress };
    expect(await fetchImage({ ...options, directory: target }, signal())).toBe(true);
    const disk = join(target, built.disk);
    const damaged = await readFile(disk);
    // Data, and a hole after it.
    damaged.fill(7, 24 * 1024 * 1024, 27 * 1024 * 1024);
    await writeFile(disk, damaged);
    await truncate(disk, DISK_BYTES + 1);
    await truncate(join(target, 'vmlinuz'), 10);
    expect(await fetchImage({ ...options, directory: target }, signal())).toBe(true);
    expect((await readFile(disk)).equals(await readFile(join(built.directory, built.disk)))).toBe(
      true,
    );
    const kernel = await readFile(join(target, 'vmlinuz'));
    expect(kernel.equals(await readFile(join(built.directory, 'vmlinuz')))).toBe(true);
  });

  test('uses nothing that an interrupted pull of another manifest left', async () => {
    await push();
    const target = join(directory.path, 'target');
    await mkdir(target);
    const content = Buffer.alloc(DISK_BYTES, 1);
    await writeFile(join(target, built.disk), content);
    await writeFile(join(target, 'manifest.json'), 'another');
    const options = { image: key, store: storeOptions(), imageDir: worker, onProgress };
    expect(await fetchImage({ ...options, directory: target }, signal())).toBe(true);
    const disk = await readFile(join(target, built.disk));
    expect(disk.equals(await readFile(join(built.directory, built.disk)))).toBe(true);
  });

  test('links files that another image from the store has', async () => {
    await push();
    await pull();
    store.fetched.splice(0);
    const target = join(directory.path, 'target');
    const options = { image: key, store: storeOptions(), imageDir: worker, onProgress };
    expect(await fetchImage({ ...options, directory: target }, signal())).toBe(true);
    expect(store.fetched).toEqual([store.published[0]?.manifest]);
    const [one, other] = await Promise.all(
      [pulled(), target].map((path) => stat(join(path, built.disk))),
    );
    expect(other?.ino).toBe(one?.ino);
  });

  test('links no file of an image whose manifest it cannot read', async () => {
    await push();
    await pull();
    await writeFile(join(pulled(), 'manifest.json'), '{"version":2}');
    const target = join(directory.path, 'target');
    const options = { image: key, store: storeOptions(), imageDir: worker, onProgress };
    expect(await fetchImage({ ...options, directory: target }, signal())).toBe(true);
    expect((await stat(join(target, built.disk))).nlink).toBe(1);
  });

  test('survives failures of the store, and a few blobs at a time are in transfer', async () => {
    await push();
    let running = 0;
    let most = 0;
    let failures = 0;
    store.beforeBlob = async () => {
      running += 1;
      most = Math.max(most, running);
      await delay(5);
      running -= 1;
      failures += 1;
      if (failures % 3 === 0) throw new Error('the store is down');
    };
    expect(await pull()).toBe(true);
    await expectSameFiles();
    expect(most).toBeLessThanOrEqual(4);
  });

  test('of an image that is not stored lets it be built only where that is allowed', async () => {
    await expect(pull()).rejects.toBeInstanceOf(ImageNotStoredError);
    const lines: string[] = [];
    const said = (line: string) => void lines.push(line);
    expect(await pull({ mayBuild: true, onOutcome: said })).toBe(false);
    expect(lines.at(-1)).toContain('the store does not have the image; building it');
  });
});

describe('an image of which the store has lost a blob', () => {
  test('is not used, but built where that is allowed', async () => {
    await push();
    store.blobs.delete(firstPart().blob.sha256);
    const attempt = pull();
    await expect(attempt).rejects.toBeInstanceOf(ImageNotStoredError);
    await expect(attempt).rejects.toThrow('the store has lost a part of the image');
    expect(await pull({ mayBuild: true })).toBe(false);
    await expect(stat(pulled())).rejects.toThrow('ENOENT');
  });
});

describe('a hostile object store', () => {
  test('cannot exchange the manifest for an older one with a valid signature', async () => {
    await push();
    const older = store.blobs.get(store.published.at(-1)?.manifest ?? '') ?? Buffer.of();
    await writeFile(join(built.directory, 'initrd'), 'mended');
    await push();
    const { manifest: newer = '' } = store.published.at(-1) ?? {};
    store.blobs.set(newer, older);
    await expectRefused('another one than the control plane named');
  });

  test('cannot exchange, change, cut off or extend a blob', async () => {
    await push();
    const { blob } = firstPart();
    const right = store.blobs.get(blob.sha256) ?? Buffer.of();
    const changed = Buffer.from(right);
    changed[100] = (changed[100] ?? 0) ^ 1;
    for (const wrong of [changed, right.subarray(0, -1), Buffer.of(), Buffer.alloc(right.length)]) {
      store.blobs.set(blob.sha256, wrong);
      await expectRefused('is not what the manifest says');
    }
    store.blobs.set(blob.sha256, Buffer.concat([right, Buffer.of(0)]));
    await expectRefused('too large');
    store.blobs.set(blob.sha256, right);
    expect(await pull()).toBe(true);
    await expectSameFiles();
  });
});

describe('a broken into control plane or store', () => {
  test('cannot name a manifest that no trusted key signed', async () => {
    await push();
    const right = manifest();
    substitute(right, STRANGER);
    await expectRefused('no valid signature of a trusted key');
    const unsigned = { payloadType: 'x', payload: '', signatures: [] };
    replaceManifest(Buffer.from(JSON.stringify(unsigned)));
    await expectRefused('no signed envelope');
    replaceManifest(Buffer.from('{'));
    await expectRefused('no JSON');
    await expectRefused('no JSON', { trustedKeys: [] });
  });

  test('cannot change a signed manifest, or what it is', async () => {
    await push();
    const text = store.blobs.get(store.published.at(-1)?.manifest ?? '')?.toString() ?? '';
    const envelope: { payload: string; payloadType: string } = JSON.parse(text);
    const payload = Buffer.from(envelope.payload, 'base64').toString();
    const changed = payload.replace('"template":"small"', '"template":"other"');
    for (const wrong of [
      { ...envelope, payload: Buffer.from(changed).toString('base64') },
      { ...envelope, signatures: [{ sig: '' }] },
    ]) {
      replaceManifest(Buffer.from(JSON.stringify(wrong)));
      await expectRefused('no valid signature of a trusted key');
    }
    replaceManifest(Buffer.from(JSON.stringify({ ...envelope, payloadType: 'another' })));
    await expectRefused('of an unknown type');
  });

  test('cannot give the signed image of another template, recipe or processor', async () => {
    await push();
    const right = manifest();
    for (const other of [{ template: 'other' }, { image: '0'.repeat(12) }, { arch: 'other' }]) {
      substitute({ ...right, ...other });
      await expectRefused('the manifest is that of another');
    }
  });

  test('cannot bring back a signed image that the operator withdrew', async () => {
    await push();
    const outdated = manifest();
    const notBefore = new Date(Date.parse(outdated.created_at) + 1);
    await expectRefused('are withdrawn', { notBefore });
    substitute({ ...outdated, created_at: notBefore.toISOString() });
    expect(await pull({ notBefore })).toBe(true);
  });

  test('cannot give an image to an older svc than it is for', async () => {
    await push();
    for (const version of ['1.1.9', '0.9.0', '1.1.20']) {
      await expectRefused('the image needs svc 1.2.0 or later', { version });
    }
    expect(await pull({ version: '1.10.0' })).toBe(true);
  });
});

describe('a signed manifest that was made to harm', () => {
  let right: ImageManifest;
  beforeEach(async () => {
    await push();
    right = manifest();
  });
  const withDisk = (change: (file: ImageManifest['files'][number]) => object): ImageManifest => {
    const files = right.files.map((file) =>
      file.name === built.disk ? { ...file, ...change(file) } : file,
    );
    return { ...right, files };
  };

  test('unpacks no blob to more, or to less, than its part', async () => {
    const part = firstPart();
    for (const size of [64 * PART_BYTES, PART_BYTES + 1, PART_BYTES - 1, 0]) {
      const bomb = await packPart(Buffer.alloc(size));
      store.blobs.set(sha256(bomb), bomb);
      const blob = { sha256: sha256(bomb), size: bomb.length };
      substitute(withDisk(({ parts }) => ({ parts: [{ ...part, blob }, ...parts.slice(1)] })));
      await expectRefused('does not unpack to its part');
      // It is not unpacked further than that.
      const cause = { code: 'ERR_BUFFER_TOO_LARGE' };
      if (size > PART_BYTES) await expect(pull()).rejects.toMatchObject({ cause });
    }
    const garbage = Buffer.from('no zstd at all');
    store.blobs.set(sha256(garbage), garbage);
    const blob = { sha256: sha256(garbage), size: garbage.length };
    substitute(withDisk(({ parts }) => ({ parts: [{ ...part, blob }, ...parts.slice(1)] })));
    await expectRefused('does not unpack to its part');
  });

  test('writes nothing outside of its directory, over itself or beyond its end', async () => {
    const part = firstPart();
    for (const name of ['../vmlinuz', '/etc/x', '..', '.hidden', 'a/b', '', 'a\u0000']) {
      substitute(withDisk(() => ({ name })));
      await expectRefused('the manifest is invalid');
    }
    for (const name of ['vmlinuz', 'manifest.json']) {
      substitute(withDisk(() => ({ name })));
      await expectRefused('names a file twice');
    }
    for (const parts of [
      [part, part],
      [{ ...part, offset: 64 * PART_BYTES }],
      [{ ...part, size: PART_BYTES - 1 }],
    ]) {
      substitute(withDisk(() => ({ parts })));
      await expectRefused('do not fit together');
    }
    substitute(withDisk(() => ({ parts: [{ ...part, offset: 1 }] })));
    await expectRefused('the manifest is invalid');
  });

  test('has every file of an image, and the description of this one', async () => {
    substitute({ ...right, files: right.files.filter(({ name }) => name !== 'initrd') });
    await expectRefused('lacks a file');
    substitute({ ...right, files: right.files.filter(({ name }) => name !== built.disk) });
    await expectRefused('is not its own');
  });

  test('has a description that can be read, and a time', async () => {
    const content = Buffer.from('{');
    const blob = await packPart(content);
    store.blobs.set(sha256(blob), blob);
    const part = { offset: 0, size: 1, sha256: sha256(content) };
    const parts = [{ ...part, blob: { sha256: sha256(blob), size: blob.length } }];
    const description = { name: 'image.json', size: 1, parts };
    const others = right.files.filter(({ name }) => name !== 'image.json');
    substitute({ ...right, files: [...others, description] });
    await expectRefused('is no JSON');
    for (const created_at of ['', 'tomorrow', '2026-11-24', '9']) {
      substitute({ ...right, created_at });
      await expectRefused('the manifest is invalid');
    }
  });

  test('is not read if it is too large', async () => {
    const { manifest: name = '' } = store.published.at(-1) ?? {};
    store.blobs.set(name, Buffer.alloc(9 * 1024 * 1024, ' '));
    await expectRefused('too large');
    expect(store.fetched).toEqual([]);
  });
});
