import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '@svc/service-kit/process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryImageStore } from '../../../test/memory-image-store.ts';
import { smallRecipe } from '../../../test/small-recipe.ts';
import { temporaryDirectory } from '../../../test/temporary-directory.ts';
import { unbootableImage } from '../../../test/unbootable-image.ts';
import { readImages } from '../image-store.ts';
import { pullImage } from './pull-image.ts';
import { pushImage } from './push-image.ts';
import { createImageSigningKey, publicKeyText, readImageSigningKey } from './signing-keys.ts';

const signingKey = readImageSigningKey(createImageSigningKey().privateKey);
const signal = () => AbortSignal.timeout(120_000);
const onProgress = () => undefined;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let imageDir: string;
let image: { readonly template: string; readonly id: string };
let store: MemoryImageStore;

beforeEach(async () => {
  directory = await temporaryDirectory();
  const recipes = await smallRecipe(directory.path);
  const builder = join(directory.path, 'builder');
  const { id } = await unbootableImage(builder, 'small', recipes);
  image = { template: 'small', id };
  store = new MemoryImageStore();
  const push = { template: 'small', recipes, imageDir: builder, sink: store, onProgress };
  await pushImage({ ...push, signingKey, version: '1.0.0' }, signal());
  imageDir = join(directory.path, 'worker');
  await mkdir(imageDir);
  await runProgram('mount', ['-t', 'tmpfs', '-o', 'size=2g', 'tmpfs', imageDir]);
});
afterEach(async () => {
  await runProgram('umount', [imageDir]);
  await directory.remove();
});

const resize = (size: string) =>
  runProgram('mount', ['-o', `remount,size=${size}`, 'tmpfs', imageDir]);

function pull(mayBuild: boolean): Promise<boolean> {
  const trust = { trustedKeys: [publicKeyText(signingKey)], version: '1.0.0', mayBuild };
  const options = { ...trust, source: store, onOutcome: () => undefined };
  return pullImage(image, options, { imageDir, onProgress }, signal());
}

test('an image for which there is no room is not fetched', async () => {
  await resize('1g');
  for (const mayBuild of [false, true]) {
    store.fetched.splice(0);
    await expect(pull(mayBuild)).rejects.toMatchObject({
      code: 'host_disk_full',
      message: expect.stringMatching(/^the image needs \d+ MB of free space, and the disk of /),
    });
    expect(store.fetched).toEqual([store.published[0]?.manifest]);
    expect(await readdir(join(imageDir, '.pulls'))).toEqual([]);
  }
  await resize('2g');
  expect(await pull(false)).toBe(true);
});

test('a disk that becomes full meanwhile gets its space back', async () => {
  store.beforeBlob = async () => {
    if (store.fetched.length === 2) await resize('2m');
  };
  await expect(pull(true)).rejects.toMatchObject({ code: 'host_disk_full' });
  expect(await readdir(join(imageDir, '.pulls'))).toEqual([]);
  expect(await readImages(imageDir)).toEqual([]);
});
