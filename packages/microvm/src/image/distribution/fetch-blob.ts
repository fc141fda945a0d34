import { retry } from '@svc/service-kit/concurrency';
import { ImageRefusedError } from './image-refused.ts';
import { BlobGoneError, type ImageSource } from './image-source.ts';

const ATTEMPTS = 5;
const PAUSES = { baseMs: 500, maxMs: 10_000 };

/** A blob of at most this size, after a few attempts. Its content is not verified. */
export function fetchBlob(
  source: ImageSource,
  { sha256, size }: { readonly sha256: string; readonly size: number },
  signal: AbortSignal,
): Promise<Buffer> {
  const isTransient = (error: unknown) =>
    !(error instanceof BlobGoneError || error instanceof ImageRefusedError);
  return retry(() => source.blob(sha256, size, signal), {
    ...PAUSES,
    attempts: ATTEMPTS,
    signal,
    isTransient,
  });
}
