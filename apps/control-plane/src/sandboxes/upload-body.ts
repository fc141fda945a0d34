import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { declaredUploadBytes, ServiceError } from '@svc/contract';
import { hasData, LimitedStream, limitBody } from '@svc/service-kit/streams';

/** The body of an upload, which is not empty and never exceeds its limit. */
export interface UploadBody {
  readonly source: Readable;
  readonly length: number | undefined;
}

/**
 * Opens the body of an upload request. Destroying the stream leaves the connection open for the response.
 * @throws ServiceError `missing_body` when it is empty, `payload_too_large` when its declared length is over the
 *   limit; a body that turns out too large fails while it is read
 */
export async function openUpload(request: IncomingMessage, maxBytes: number): Promise<UploadBody> {
  const length = declaredUploadBytes(request.headers['content-length'], maxBytes);
  const source = new LimitedStream({ maxBytes });
  limitBody(request, source);
  // An empty body without a declared length must not reach the worker.
  if (length === undefined && !(await hasData(source))) throw new ServiceError('missing_body');
  return { source, length };
}
