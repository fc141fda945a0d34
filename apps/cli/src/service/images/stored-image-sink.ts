import { createHash } from 'node:crypto';
import { newImageKey } from '@svc/control-plane';
import type {
  BlobState,
  ImageKey,
  ImageSink,
  PublishedImage,
  StoredImageContent,
} from '@svc/microvm';
import { type ObjectStore, ObjectStoreError } from '@svc/object-store';
import { openDeadline, retry } from '@svc/service-kit/concurrency';
import type { ImageRepository } from '@svc/store';

/** For one blob of at most a few megabytes. */
const TRANSFER_MS = 120_000;
/** More than any blob has. A longer object has another digest. */
const READ = { first: 0, last: 16 * 1024 * 1024 - 1 };
const ATTEMPTS = 5;
const PAUSES = { baseMs: 500, maxMs: 10_000 };

/** The object store of a fleet as a place for images. The database knows of every object before it is written. */
export class StoredImageSink implements ImageSink {
  readonly #images: ImageRepository;
  readonly #objects: Pick<ObjectStore, 'get' | 'put'>;

  constructor(images: ImageRepository, objects: Pick<ObjectStore, 'get' | 'put'>) {
    this.#images = images;
    this.#objects = objects;
  }

  async check(sha256: string, signal: AbortSignal): Promise<BlobState> {
    const id = bytesOf(sha256);
    const objectKey = await this.#images.renew(id);
    if (objectKey === undefined) return 'absent';
    const digest = await this.#transfer(signal, (limit) => this.#digest(objectKey, limit));
    if (digest === sha256) return 'stored';
    await this.#images.replaceObject(objectKey, newImageKey(id));
    return 'damaged';
  }

  async put(sha256: string, blob: Buffer, signal: AbortSignal): Promise<void> {
    const id = bytesOf(sha256);
    const size = blob.length;
    const named = { id, objectKey: newImageKey(id), bytes: size };
    const objectKey = await this.#images.announce(named);
    await this.#transfer(signal, (limit) =>
      this.#objects.put(objectKey, blob, { size, signal: limit }),
    );
    await this.#images.confirm(objectKey);
  }

  async current({ template, image, arch }: ImageKey): Promise<StoredImageContent | undefined> {
    const found = await this.#images.find({ template, imageId: image, arch });
    if (found === undefined) return undefined;
    const { contentId, manifestId, signer } = found;
    return { content: contentId.toString('hex'), manifest: manifestId.toString('hex'), signer };
  }

  async publish({ image, manifest, content, blobs, ...rest }: PublishedImage): Promise<void> {
    await this.#images.publish({
      ...rest,
      imageId: image,
      manifestId: bytesOf(manifest),
      contentId: bytesOf(content),
      blobs: blobs.map(bytesOf),
    });
  }

  /** Digest of an object, as far as a blob can be long. Undefined if the store has lost it. */
  async #digest(objectKey: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      const { body } = await this.#objects.get(objectKey, { range: READ, signal });
      const hash = createHash('sha256');
      for await (const chunk of body as AsyncIterable<Buffer>) hash.update(chunk);
      return hash.digest('hex');
    } catch (error) {
      const { code } = error instanceof ObjectStoreError ? error : { code: undefined };
      // An empty one has no bytes in the range.
      if (code === 'object_not_found' || code === 'object_range_invalid') return undefined;
      throw error;
    }
  }

  /** Runs a transfer of one blob a few times, each with a time limit. */
  #transfer<T>(signal: AbortSignal, transfer: (limit: AbortSignal) => Promise<T>): Promise<T> {
    const once = async () => {
      using deadline = openDeadline(signal, TRANSFER_MS);
      return await transfer(deadline.signal);
    };
    return retry(once, { ...PAUSES, attempts: ATTEMPTS, signal });
  }
}

function bytesOf(sha256: string): Buffer {
  return Buffer.from(sha256, 'hex');
}
