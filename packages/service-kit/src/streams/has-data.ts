import type { Readable } from 'node:stream';

/**
 * Waits until a stream has data or ends. True when there is data, which stays in the stream.
 * @throws the stream's error, or the signal's reason
 */
export async function hasData(stream: Readable, signal?: AbortSignal): Promise<boolean> {
  signal?.throwIfAborted();
  if (stream.readableLength > 0) return true;
  if (stream.readableEnded) return false;
  const settled = Promise.withResolvers<void>();
  const onReady = () => settled.resolve();
  const onError = (error: Error) => settled.reject(error);
  const onAbort = () => settled.reject(signal?.reason);
  stream.once('readable', onReady).once('end', onReady).once('error', onError);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    await settled.promise;
    return stream.readableLength > 0;
  } finally {
    stream.off('readable', onReady).off('end', onReady).off('error', onError);
    signal?.removeEventListener('abort', onAbort);
  }
}
