import { loadConfig } from '@svc/config';
import type { ImageInfo } from '../facade.ts';
import { buildImage } from '../image/build-image.ts';

const BUILD_MS = 20 * 60_000;

/** The shared image directory, with the standard image built: tests restore real VMs from it. */
export async function testImage(): Promise<{ imageDir: string; image: ImageInfo }> {
  const { imageDir } = loadConfig();
  const options = { template: 'standard', imageDir, onProgress: () => undefined };
  return { imageDir, image: await buildImage(options, AbortSignal.timeout(BUILD_MS)) };
}
