import { withDeadline } from '@svc/service-kit/concurrency';
import type { ImageInfo } from '../image-info.ts';
import { describeImage } from '../image-info.ts';
import { readRecipe } from '../recipe.ts';
import type { BuildImageOptions } from './build-options.ts';
import { buildSnapshot } from './build-snapshot.ts';
import { obtainImage } from './obtain-image.ts';

const BUILD_MS = 30 * 60_000;

/**
 * Builds the image of the current recipe, or gets it from the store, and takes its snapshot on this machine, unless they
 * exist. Atomic: the image appears complete or not at all. Concurrent builds and pulls of one image wait for each other.
 * @throws ImageRefusedError or ImageNotStoredError if it is to come from the store
 */
export async function buildImage(
  options: BuildImageOptions,
  signal: AbortSignal,
): Promise<ImageInfo> {
  const deadline = withDeadline(signal, BUILD_MS);
  const recipe = await readRecipe(options.template, options.recipes);
  const image = await obtainImage(recipe, options, deadline);
  await buildSnapshot(image, image, options, deadline);
  return describeImage(image, true);
}
