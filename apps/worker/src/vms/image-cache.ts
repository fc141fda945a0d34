import type { ImageInfo, MicrovmHost } from '@svc/microvm';

const FRESH_MS = 1_000;

/** Reads the images of the host at most once a second: every create needs them, and they rarely change. */
export function cachedImages(
  host: Pick<MicrovmHost, 'images'>,
  now: () => number,
): () => Promise<ImageInfo[]> {
  let read: Promise<ImageInfo[]> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (read !== undefined && now() - readAt < FRESH_MS) return read;
    const current = host.images();
    read = current;
    readAt = now();
    current.catch(() => {
      if (read === current) read = undefined;
    });
    return current;
  };
}
