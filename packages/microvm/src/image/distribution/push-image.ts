import type { KeyObject } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Slots, withDeadline } from '@svc/service-kit/concurrency';
import type { Image } from '../image.ts';
import { readImage } from '../image-store.ts';
import { readRecipe } from '../recipe.ts';
import { packPart } from './blob-codec.ts';
import { ImageNotStoredError } from './image-refused.ts';
import {
  contentDigest,
  type ImageFile,
  type ImageKey,
  type ImagePart,
  PART_BYTES,
  sha256,
  signManifest,
} from './manifest.ts';
import { publicKeyText } from './signing-keys.ts';
import { isZero, partsWithData, readPart } from './sparse-file.ts';

const PUSH_MS = 4 * 3_600_000;
/** Each needs up to 24 MiB of memory, and compresses on a thread of its own. */
const PARTS_AT_ONCE = 4;

/** Whether the store has a blob: as it was sent, not at all, or lost or changed since. */
export type BlobState = 'stored' | 'absent' | 'damaged';

/** What the store knows of an image. */
export interface StoredImageContent {
  /** See `contentDigest`. */
  readonly content: string;
  /** The public key that it is signed with. */
  readonly signer: string;
  /** Digest of the signed manifest, which is a blob too. */
  readonly manifest: string;
}

export interface PublishedImage extends ImageKey, StoredImageContent {
  readonly svcFrom: string;
  /** The digests of all blobs, that of the manifest included. */
  readonly blobs: readonly string[];
}

/** Where images go. Methods fail when the store does; another push then goes on where this one ended. */
export interface ImageSink {
  /** Reads a blob in the store. If it is `stored`, it stays there for as long as a push takes; a `damaged` one may be put again. */
  check(sha256: string, signal: AbortSignal): Promise<BlobState>;
  put(sha256: string, blob: Buffer, signal: AbortSignal): Promise<void>;
  /** The image that workers get now. */
  current(image: ImageKey, signal: AbortSignal): Promise<StoredImageContent | undefined>;
  /** Makes it the image that workers get. All its blobs are in the store. */
  publish(image: PublishedImage, signal: AbortSignal): Promise<void>;
}

export interface PushImageOptions {
  readonly template: string;
  readonly imageDir: string;
  /** The folder of recipes. Default: the repository's `images`. */
  readonly recipes?: string;
  readonly sink: ImageSink;
  readonly signingKey: KeyObject;
  /** The version of svc that is pushing; older ones do not use the image. */
  readonly version: string;
  readonly onProgress: (line: string) => void;
}

export interface PushedImage {
  readonly id: string;
  /** Whether the store had the same image with a signature of the same key before, so that nothing changed. */
  readonly unchanged: boolean;
  /** Compressed. */
  readonly bytes: number;
  readonly sentBytes: number;
  /** Number of blobs that the store had lost or changed, and that it has again. */
  readonly repaired: number;
}

/**
 * Pushes the image of the current recipe to the store, and signs it. What the store has is read and stays, unless it is damaged.
 * @throws ImageNotStoredError if the image has not been built
 */
export async function pushImage(
  options: PushImageOptions,
  signal: AbortSignal,
): Promise<PushedImage> {
  const { template, imageDir, sink, signingKey, version: svcFrom } = options;
  const deadline = withDeadline(signal, PUSH_MS);
  const { id } = await readRecipe(template, options.recipes);
  const image = await readImage(imageDir, template, id);
  if (image === undefined) {
    throw new ImageNotStoredError(`the image ${id} of ${template} has not been built here`);
  }
  const push = new Push(options, deadline);
  const files = await push.files(image);
  const blobs = files.flatMap(({ parts }) => parts.map(({ blob }) => blob.sha256));
  const key = { template, image: id, arch: process.arch };
  const [content, signer] = [contentDigest(files), publicKeyText(signingKey)];
  const current = await sink.current(key, deadline);
  if (current?.content === content && current.signer === signer) {
    if (await push.keeps(current.manifest)) return { id, ...push.result, unchanged: true };
  }
  const created = { svc_from: svcFrom, created_at: new Date().toISOString() };
  const envelope = signManifest({ ...key, ...created, files }, signingKey);
  const manifest = sha256(envelope);
  await push.send(manifest, envelope);
  const published = { ...key, content, signer, svcFrom, manifest };
  await sink.publish({ ...published, blobs: [...new Set([...blobs, manifest])] }, deadline);
  return { id, ...push.result, unchanged: false };
}

/** The files of an image, by name. Snapshots are not among them: each machine takes its own. */
function pathsOf({ directory, disk, kernelPath, initrdPath }: Image): string[] {
  return [join(directory, 'image.json'), kernelPath, initrdPath, ...disk].sort();
}

class Push {
  readonly #options: PushImageOptions;
  readonly #signal: AbortSignal;
  readonly #slots = new Slots(PARTS_AT_ONCE);
  #bytes = 0;
  #sentBytes = 0;
  #repaired = 0;

  constructor(options: PushImageOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
  }

  get result(): Pick<PushedImage, 'bytes' | 'sentBytes' | 'repaired'> {
    return { bytes: this.#bytes, sentBytes: this.#sentBytes, repaired: this.#repaired };
  }

  /** Whether the store still has a blob. If it is damaged, it counts as repaired: the caller sends another for it. */
  async keeps(digest: string): Promise<boolean> {
    const state = await this.#options.sink.check(digest, this.#signal);
    if (state === 'damaged') this.#repaired += 1;
    return state === 'stored';
  }

  /** Sends what the store lacks of an image's files, and returns their descriptions. */
  async files(image: Image): Promise<ImageFile[]> {
    const files: ImageFile[] = [];
    for (const path of pathsOf(image)) files.push(await this.#file(path));
    return files;
  }

  async send(digest: string, blob: Buffer): Promise<void> {
    const { sink, onProgress } = this.#options;
    this.#bytes += blob.length;
    if (!(await this.keeps(digest))) {
      await sink.put(digest, blob, this.#signal);
      this.#sentBytes += blob.length;
    }
    const [sent, all] = [this.#sentBytes, this.#bytes].map((bytes) => Math.ceil(bytes / 1_000_000));
    onProgress(`sent ${sent} MB; the store had the other ${(all ?? 0) - (sent ?? 0)} MB`);
  }

  async #file(path: string): Promise<ImageFile> {
    const file = await open(path, 'r');
    try {
      const { size } = await file.stat();
      const stopping = new AbortController();
      const signal = AbortSignal.any([this.#signal, stopping.signal]);
      const work = (await partsWithData(path)).map((offset) =>
        this.#slots
          .run(() => this.#part(file, offset, signal), signal)
          .catch((error: unknown) => {
            stopping.abort(error);
            throw error;
          }),
      );
      // The file must not be closed while a part of it is read.
      const results = await Promise.allSettled(work);
      stopping.signal.throwIfAborted();
      const parts = results.flatMap((result) =>
        result.status === 'fulfilled' && result.value !== undefined ? [result.value] : [],
      );
      return { name: basename(path), size, parts };
    } finally {
      await file.close();
    }
  }

  /** Sends a part. Undefined if it has only zeros. */
  async #part(
    file: FileHandle,
    offset: number,
    signal: AbortSignal,
  ): Promise<ImagePart | undefined> {
    signal.throwIfAborted();
    const content = await readPart(file, offset, PART_BYTES);
    if (isZero(content)) return undefined;
    const blob = await packPart(content);
    const digest = sha256(blob);
    await this.send(digest, blob);
    return {
      offset,
      size: content.length,
      sha256: sha256(content),
      blob: { sha256: digest, size: blob.length },
    };
  }
}
