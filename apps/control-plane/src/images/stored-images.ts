import type {
  LocateBlobsRequest,
  LocatedBlobs,
  LocatedImage,
  LocateImageRequest,
} from '@svc/contract';
import type { ImageRepository } from '@svc/store';
import type { Objects } from '../objects/open-objects.ts';
import { urlForWorkers, WORKER_URL_SECONDS } from '../objects/urls-for-workers.ts';

export interface StoredImagesParts {
  readonly images: Pick<ImageRepository, 'find' | 'objects'>;
  readonly objects: Objects;
}

/** VM images in the object store, for the workers that need them. Images belong to no tenant: every worker may read them. */
export class StoredImages {
  readonly #parts: StoredImagesParts;

  constructor(parts: StoredImagesParts) {
    this.#parts = parts;
  }

  /** The digest of the newest manifest of an image, by which workers recognize an older one. */
  async locate({ template, image, arch }: LocateImageRequest): Promise<LocatedImage> {
    const found = await this.#parts.images.find({ template, imageId: image, arch });
    if (found === undefined) return {};
    const { manifestId, manifestBytes } = found;
    return { manifest: { sha256: manifestId.toString('hex'), size: manifestBytes } };
  }

  /** Where to download these blobs, those of which are stored as part of an image. */
  async locateBlobs({ blobs }: LocateBlobsRequest): Promise<LocatedBlobs> {
    const { images, objects } = this.#parts;
    const found = await images.objects(blobs.map((digest) => Buffer.from(digest, 'hex')));
    const limits = { expiresSeconds: WORKER_URL_SECONDS };
    const urls = found.map(async ({ id, objectKey }) => ({
      sha256: id.toString('hex'),
      url: urlForWorkers(objects, await objects.store.presignGet(objectKey, limits)),
    }));
    return { blobs: await Promise.all(urls) };
  }
}
