import { ImageRefusedError } from '../src/image/distribution/image-refused.ts';
import { BlobGoneError, type ImageSource } from '../src/image/distribution/image-source.ts';
import { sha256 as digestOf, type ImageKey } from '../src/image/distribution/manifest.ts';
import type { BlobState, ImageSink, PublishedImage } from '../src/image/distribution/push-image.ts';

/** An image store in memory, into which tests reach to be its hostile owner. */
export class MemoryImageStore implements ImageSink, ImageSource {
  /** By digest. */
  readonly blobs = new Map<string, Buffer>();
  readonly published: PublishedImage[] = [];
  /** The digests that were sent and asked for, in order. */
  readonly sent: string[] = [];
  readonly fetched: string[] = [];
  /** Runs before each answer with a blob. */
  beforeBlob: (sha256: string) => void | Promise<void> = () => undefined;
  beforePut: (sha256: string) => void | Promise<void> = () => undefined;

  async check(sha256: string): Promise<BlobState> {
    const blob = this.blobs.get(sha256);
    if (blob === undefined) return this.sent.includes(sha256) ? 'damaged' : 'absent';
    return digestOf(blob) === sha256 ? 'stored' : 'damaged';
  }

  async put(sha256: string, blob: Buffer): Promise<void> {
    await this.beforePut(sha256);
    this.sent.push(sha256);
    this.blobs.set(sha256, Buffer.from(blob));
  }

  async current({ template, image, arch }: ImageKey): Promise<PublishedImage | undefined> {
    return this.published.findLast(
      (one) => one.template === template && one.image === image && one.arch === arch,
    );
  }

  async publish(image: PublishedImage): Promise<void> {
    for (const blob of image.blobs) {
      if (!this.blobs.has(blob)) throw new Error('a blob is missing');
    }
    this.published.push(image);
  }

  async locate(key: ImageKey): Promise<{ sha256: string; size: number } | undefined> {
    const found = await this.current(key);
    if (found === undefined) return undefined;
    return { sha256: found.manifest, size: this.blobs.get(found.manifest)?.length ?? 0 };
  }

  async blob(sha256: string, size: number): Promise<Buffer> {
    await this.beforeBlob(sha256);
    this.fetched.push(sha256);
    const blob = this.blobs.get(sha256);
    if (blob === undefined) throw new BlobGoneError('the blob is gone');
    // As a client that stops reading where the blob should end.
    if (blob.length > size) throw new ImageRefusedError('damaged', 'the blob is too large');
    return blob;
  }
}
