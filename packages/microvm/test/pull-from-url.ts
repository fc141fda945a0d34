/** Fetches the image of the recipe `small` from an HTTP server, in a process that a test can kill. */

import { obtainImage } from '../src/image/build/obtain-image.ts';
import type { ImageSource, ManifestLocation } from '../src/image/distribution/image-source.ts';
import { readRecipe } from '../src/image/recipe.ts';

const MS = 120_000;
const [, , url = '', imageDir = '', recipes = '', key = ''] = process.argv;

const source: ImageSource = {
  locate: async (_image, signal) => {
    const response = await fetch(`${url}/manifest`, { signal });
    return (await response.json()) as ManifestLocation;
  },
  blob: async (sha256, _size, signal) => {
    const response = await fetch(`${url}/blobs/${sha256}`, { signal });
    return Buffer.from(await response.arrayBuffer());
  },
};
const store = { source, trustedKeys: [key], version: '1.0.0', mayBuild: false };
const options = { template: 'small', recipes, imageDir, onProgress: () => undefined };
await obtainImage(
  await readRecipe('small', recipes),
  { ...options, store: { ...store, onOutcome: (line) => console.log(line) } },
  AbortSignal.timeout(MS),
);
