import type { Config } from '@svc/config';
import { openObjectStore } from '@svc/control-plane';
import { ImageNotStoredError, type PushedImage, pushImage } from '@svc/microvm';
import { CliError } from '../../output/errors.ts';
import { VERSION } from '../../version.ts';
import { withImages } from './operator-images.ts';
import { readSigningKey } from './signing-key.ts';
import { StoredImageSink } from './stored-image-sink.ts';

/**
 * Signs the image of the current recipe of a template, and pushes it to the object store of the configured service.
 * @throws CliError `image_not_built`, `no_database`, and those of {@link readSigningKey}
 */
export async function push(
  config: Config,
  template: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<PushedImage> {
  const signingKey = await readSigningKey(config);
  return withImages(config, async (images) => {
    await using objects = await openObjectStore(config);
    await objects.ping(signal);
    const sink = new StoredImageSink(images, objects);
    const { imageDir } = config;
    const options = { template, imageDir, sink, signingKey, version: VERSION, onProgress };
    return pushImage(options, signal).catch((error: unknown) => {
      if (!(error instanceof ImageNotStoredError)) throw error;
      throw new CliError('image_not_built', error.message, {
        next: `build and push it with svc image build ${template} --push`,
        cause: error,
      });
    });
  });
}
