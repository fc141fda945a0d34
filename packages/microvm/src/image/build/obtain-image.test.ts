import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryImageStore } from '../../../test/memory-image-store.ts';
import { smallRecipe } from '../../../test/small-recipe.ts';
import { temporaryDirectory } from '../../../test/temporary-directory.ts';
import { unbootableImage } from '../../../test/unbootable-image.ts';
import { pushImage } from '../distribution/push-image.ts';
import {
  createImageSigningKey,
  publicKeyText,
  readImageSigningKey,
} from '../distribution/signing-keys.ts';
import { readImages } from '../image-store.ts';
import { readRecipe } from '../recipe.ts';
import { obtainImage } from './obtain-image.ts';

const signingKey = readImageSigningKey(createImageSigningKey().privateKey);
const version = '1.0.0';
const signal = () => AbortSignal.timeout(120_000);

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

test('starts that need the same image at once fetch it once', async () => {
  const recipes = await smallRecipe(directory.path);
  const builder = join(directory.path, 'builder');
  const { id } = await unbootableImage(builder, 'small', recipes);
  const source = new MemoryImageStore();
  const common = { template: 'small', recipes, onProgress: () => undefined };
  await pushImage({ ...common, imageDir: builder, sink: source, signingKey, version }, signal());

  const imageDir = join(directory.path, 'worker');
  await mkdir(imageDir);
  const outcomes: string[] = [];
  const store = {
    ...{ source, version, mayBuild: false, trustedKeys: [publicKeyText(signingKey)] },
    onOutcome: (line: string) => void outcomes.push(line),
  };
  const recipe = await readRecipe('small', recipes);
  const starts = [1, 2, 3].map(() => obtainImage(recipe, { ...common, imageDir, store }, signal()));
  for (const image of await Promise.all(starts)) expect(image).toMatchObject({ id });
  expect(source.fetched.length).toBe(new Set(source.fetched).size);
  expect(outcomes).toEqual([expect.stringContaining('fetched the image from the store in ')]);
  expect(await readImages(imageDir)).toHaveLength(1);
  expect(await readdir(join(imageDir, '.pulls'))).toEqual([]);

  // It is there, so that the store is not asked.
  source.published.splice(0);
  expect(await obtainImage(recipe, { ...common, imageDir, store }, signal())).toMatchObject({ id });
});
