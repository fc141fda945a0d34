import { mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { retry } from '@svc/service-kit/concurrency';
import type { BuildImageOptions } from '../build/build-options.ts';
import { imageDirectory } from '../image-store.ts';
import { fetchImage } from './fetch-image.ts';
import { ImageNotStoredError, ImageRefusedError } from './image-refused.ts';
import { BlobGoneError, type ImageStoreOptions } from './image-source.ts';
import type { ImageKey } from './manifest.ts';
import { pullDirectory } from './pull-directory.ts';
import { isDiskFull } from './require-space.ts';

/** Attempts to reach the store, each with several for every blob; fewer if the image can be built instead. */
const ATTEMPTS = { only: 12, beforeBuild: 4 };
/** A blob that is gone belongs to an image that was just replaced, unless it is gone this often. */
const LOSSES = 3;
const PAUSES = { baseMs: 2_000, maxMs: 30_000 };

/**
 * Gets the files of an image from the store into the image directory, where it appears complete or not at all. The caller
 * holds the lock of its build. False if it is to be built instead, which `onOutcome` explains.
 * @throws ImageRefusedError, also if it could be built: somebody has to look at the store; ImageNotStoredError; MicrovmError
 * `host_disk_full`, also if it could be built, which takes even more space
 */
export async function pullImage(
  { template, id }: { readonly template: string; readonly id: string },
  store: ImageStoreOptions,
  { imageDir, onProgress }: Pick<BuildImageOptions, 'imageDir' | 'onProgress'>,
  signal: AbortSignal,
): Promise<boolean> {
  const started = performance.now();
  const directory = pullDirectory(imageDir, template, id);
  const image = { template, image: id, arch: process.arch };
  onProgress('looking for the image in the store');
  const attempts = store.mayBuild ? ATTEMPTS.beforeBuild : ATTEMPTS.only;
  let losses = 0;
  const isTransient = (error: unknown) => {
    if (error instanceof BlobGoneError) losses += 1;
    return losses < LOSSES && !(error instanceof ImageRefusedError || isDiskFull(error));
  };
  let isStored: boolean;
  try {
    isStored = await retry(
      () => fetchImage({ image, store, imageDir, directory, onProgress }, signal),
      { ...PAUSES, attempts, signal, isTransient },
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ImageRefusedError || isDiskFull(error)) throw error;
    if (!store.mayBuild) throw error instanceof BlobGoneError ? incomplete(image, error) : error;
    store.onOutcome(`the image store cannot be used (${messageOf(error)}); building the image`);
    return false;
  }
  if (!isStored) {
    if (!store.mayBuild) {
      throw new ImageNotStoredError(
        `the store has no image ${id} of ${template} for ${image.arch}`,
      );
    }
    store.onOutcome('the store does not have the image; building it');
    return false;
  }
  await place(directory, imageDirectory(imageDir, template, id));
  const seconds = Math.round((performance.now() - started) / 1000);
  store.onOutcome(`fetched the image from the store in ${seconds} s, with a valid signature`);
  return true;
}

function incomplete({ template, image }: ImageKey, cause: Error): ImageNotStoredError {
  const message = `the store has lost a part of the image ${image} of ${template}`;
  return new ImageNotStoredError(message, { cause });
}

/** Moves a complete image to its name, durably. */
async function place(from: string, to: string): Promise<void> {
  await sync(from);
  await mkdir(dirname(to), { recursive: true });
  await rename(from, to);
  await sync(dirname(to));
}

async function sync(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
