import { loadConfig } from '@svc/config';
import { buildImage } from '../src/image/build/build-image.ts';
import type { ImageInfo } from '../src/image/image-info.ts';

const BUILD_MS = 20 * 60_000;

/** Builds the standard image in the shared image directory. Tests restore real VMs from it. */
export async function testImage(): Promise<{ imageDir: string; image: ImageInfo }> {
  const { imageDir } = loadConfig();
  const options = { template: 'standard', imageDir, onProgress: () => undefined };
  return { imageDir, image: await buildImage(options, AbortSignal.timeout(BUILD_MS)) };
}
