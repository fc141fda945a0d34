import type { IncomingMessage } from 'node:http';
import { type Readable, Transform, type TransformCallback } from 'node:stream';
import { ServiceError } from '@svc/contract';

/** The body of an upload: not empty, and never longer than its limit. */
export interface UploadBody {
  readonly source: Readable;
  readonly length: number | undefined;
}

/**
 * Opens the body of an upload request.
 * @throws ServiceError `missing_body` when it is empty, `payload_too_large` when it says it is;
 *   one that turns out too large fails while it is read.
 */
export async function openUpload(request: IncomingMessage, limit: number): Promise<UploadBody> {
  const declared = request.headers['content-length'];
  const length = declared === undefined ? undefined : Number(declared);
  if (length === 0) throw new ServiceError('missing_body');
  if (length !== undefined && length > limit) throw new ServiceError('payload_too_large');
  const source = limited(request, limit);
  if (length === undefined) await nonEmpty(source);
  return { source, length };
}

/**
 * The body as a stream of its own: whoever gives up reading destroys it, and must not cut the connection on
 * which the caller awaits the answer.
 */
function limited(source: Readable, limit: number): Readable {
  let total = 0;
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      total += chunk.length;
      if (total > limit) done(new ServiceError('payload_too_large'));
      else done(null, chunk);
    },
  });
  source.once('error', (error) => counter.destroy(error));
  return source.pipe(counter);
}

/** Waits for the first byte: an empty body is a mistake, which nothing behind this should see. */
async function nonEmpty(source: Readable): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  source.once('readable', resolve);
  source.once('error', reject);
  await promise;
  if (source.readableLength === 0 && source.read() === null) throw new ServiceError('missing_body');
}
